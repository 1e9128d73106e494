# Defines evo_clang: Clang LibTooling and libFormat of ONE LLVM version. With several installed,
# find_package mixes them (a crash before main), so llvm-config of the newest decides everything.
find_program(EVO_LLVM_CONFIG NAMES
  llvm-config-19 llvm-config-18 llvm-config-17 llvm-config-16 llvm-config-15 llvm-config REQUIRED)

function(evo_llvm_config variable)
  execute_process(COMMAND ${EVO_LLVM_CONFIG} ${ARGN}
    OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()

evo_llvm_config(EVO_LLVM_VERSION --version)
evo_llvm_config(EVO_LLVM_INCLUDE --includedir)
evo_llvm_config(EVO_LLVM_LIBRARIES --libdir)
message(STATUS "LLVM ${EVO_LLVM_VERSION} (${EVO_LLVM_CONFIG})")

add_library(evo_clang INTERFACE)
target_include_directories(evo_clang SYSTEM INTERFACE ${EVO_LLVM_INCLUDE})
if(EVO_STATIC)
  evo_llvm_config(llvm_libraries --link-static --libs all)
  evo_llvm_config(system_libraries --link-static --system-libs)
  string(REGEX REPLACE "-lPolly[A-Z]*" "" llvm_libraries "${llvm_libraries}") # a package of its own
  separate_arguments(llvm_libraries UNIX_COMMAND "${llvm_libraries}")
  separate_arguments(system_libraries UNIX_COMMAND "${system_libraries}")
  file(GLOB clang_libraries ${EVO_LLVM_LIBRARIES}/libclang[A-Z]*.a)
  target_link_options(evo_clang INTERFACE -fuse-ld=lld -Wl,--gc-sections -Wl,--as-needed
    -L${EVO_LLVM_LIBRARIES})
  target_link_libraries(evo_clang INTERFACE -Wl,--start-group ${clang_libraries} -Wl,--end-group
    ${llvm_libraries} evo_arc4random ${system_libraries})
  add_library(evo_arc4random STATIC scripts/cmake/arc4random.cpp)
else()
  # Distributions ship libclang-cpp.so.19, .so.19.1 or .so, not always the plain name.
  file(GLOB clang_cpp ${EVO_LLVM_LIBRARIES}/libclang-cpp.so*)
  file(GLOB llvm ${EVO_LLVM_LIBRARIES}/libLLVM*.so)
  list(GET clang_cpp 0 clang_cpp)
  list(GET llvm 0 llvm)
  target_link_libraries(evo_clang INTERFACE ${clang_cpp} ${llvm})
endif()
