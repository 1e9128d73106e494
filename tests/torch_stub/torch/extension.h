// The few names of PyTorch that an exported binding uses, on plain host memory, so that a test can
// compile one in a second and call it without PyTorch or a GPU.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace at {
struct IntArrayRef {
  std::vector<int64_t> values;
  IntArrayRef(std::initializer_list<int64_t> list) : values(list) {}
  bool operator==(const IntArrayRef &other) const { return values == other.values; }
};
inline std::ostream &operator<<(std::ostream &stream, const IntArrayRef &shape) {
  for (const int64_t extent : shape.values) {
    stream << '[' << extent << ']';
  }
  return stream;
}
} // namespace at

namespace torch {
enum ScalarType { kFloat32, kFloat64, kUInt8 };

struct Device {
  int index = 0;
  bool operator==(const Device &other) const { return index == other.index; }
};

struct TensorOptions {
  ScalarType type = kFloat32;
  Device place{};
  TensorOptions dtype(ScalarType scalar) const { return {scalar, place}; }
};

struct Tensor {
  at::IntArrayRef shape{};
  TensorOptions settings{};
  bool cuda = true;
  bool contiguous = true;
  std::shared_ptr<std::vector<char>> memory{};

  int64_t size(int axis) const { return shape.values.at(axis); }
  at::IntArrayRef sizes() const { return shape; }
  TensorOptions options() const { return settings; }
  ScalarType scalar_type() const { return settings.type; }
  Device device() const { return settings.place; }
  bool is_cuda() const { return cuda; }
  bool is_contiguous() const { return contiguous; }
  void *data_ptr() const { return memory->data(); }
  template <typename T> T *data_ptr() const { return reinterpret_cast<T *>(memory->data()); }
};

inline Tensor empty(at::IntArrayRef shape, TensorOptions options = {}) {
  std::size_t bytes = options.type == kUInt8 ? 1 : options.type == kFloat64 ? 8 : 4;
  for (const int64_t extent : shape.values) {
    bytes *= static_cast<std::size_t>(extent);
  }
  return {shape, options, true, true, std::make_shared<std::vector<char>>(bytes)};
}

template <typename... Parts> void check(bool good, const Parts &...parts) {
  if (!good) {
    std::ostringstream text;
    (text << ... << parts);
    throw std::runtime_error(text.str());
  }
}
} // namespace torch

#define TORCH_CHECK(...) torch::check(__VA_ARGS__)

struct Module {
  template <typename Function> void def(const char *, Function) {}
};
#define PYBIND11_MODULE(name, m) void pybind_init(Module &m)
