"""Compiles the device code of a .cu file with NVRTC for several architectures.

    nvrtc_check.py FILE ARCH...        e.g. nvrtc_check.py optimized_lora.cu 52 60 70 86

Needs the packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-runtime-cu12, 12.4.*, in NVRTC_HOME,
where scripts/setup.sh --checks puts them. Exits 77 where they are missing.
"""

import ctypes
import os
import pathlib
import sys


def find_packages():
    home = os.environ.get("NVRTC_HOME", pathlib.Path.home() / ".cache" / "evo" / "nvrtc")
    root = pathlib.Path(home) / "nvidia"
    library = root / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
    headers = root / "cuda_runtime" / "include"
    if library.exists() and headers.exists():
        return library, headers
    print("skipped: NVRTC 12.4 is not installed; scripts/setup.sh --checks installs it")
    sys.exit(77)


def compile_for(nvrtc, file, arch, headers):
    """The compiler's log; empty when the device code compiles."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), file.read_bytes(), file.name.encode(), 0, None, None
    )
    # sm_: down to machine code, for inline PTX is checked only there. Unannotated constexpr helpers
    # would else count as host functions, which NVRTC refuses.
    flags = [f"--gpu-architecture=sm_{arch}", f"--include-path={headers}", "--std=c++17"]
    flags.append("--device-as-default-execution-space")
    status = nvrtc.nvrtcCompileProgram(
        program, len(flags), (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
    )
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() or f"NVRTC status {status}" if status else ""


def main():
    file, archs = pathlib.Path(sys.argv[1]), sys.argv[2:]
    library, headers = find_packages()
    nvrtc = ctypes.CDLL(str(library))
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    failed = False
    for arch in archs:
        log = compile_for(nvrtc, file, arch, headers)
        failed = failed or bool(log)
        print(f"NVRTC {major.value}.{minor.value}, sm_{arch}: {log or 'compiles'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
