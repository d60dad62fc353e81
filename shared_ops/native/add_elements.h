// Sums of elements whatever their dtype: for gradients that add back what was copied. Integers wrap around.
#pragma once
#include "kernel.h"

namespace rillet {

template <class T>
inline void AddTo(int64_t n, const void* src, void* dst) {
  const T* x = static_cast<const T*>(src);
  T* y = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(y[i] + x[i]);
}

using AddFunction = void (*)(int64_t n, const void* src, void* dst);

// dst[i] += src[i] for dtype, or null where it has no sums (bool). Unsigned arithmetic stands in for signed: it may
// wrap.
inline AddFunction AdderOf(DType dtype) {
  switch (dtype) {
    case DType::kF32: return AddTo<float>;
    case DType::kF64: return AddTo<double>;
    case DType::kI8:
    case DType::kU8: return AddTo<uint8_t>;
    case DType::kI32: return AddTo<uint32_t>;
    case DType::kI64: return AddTo<uint64_t>;
    case DType::kBool: return nullptr;
  }
  return nullptr;
}

}  // namespace rillet
