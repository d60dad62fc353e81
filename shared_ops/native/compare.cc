// Comparisons and logic: results are bytes of 0 or 1.
#include "kernel.h"
#include "typed_rows.h"

namespace rillet {
namespace {

using f32 = float;
using i32 = int32_t;
using i64 = int64_t;
using boolean = uint8_t;  // 0 or 1

struct equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct not_equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};
struct less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct less_equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct greater {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct greater_equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct logical_and {
  boolean operator()(boolean a, boolean b) const { return a & b; }
};
struct logical_or {
  boolean operator()(boolean a, boolean b) const { return a | b; }
};
struct logical_xor {
  boolean operator()(boolean a, boolean b) const { return a ^ b; }
};

template <class T>
struct ElementOf {
  using Type = T;
};
template <>
struct ElementOf<bool> {
  using Type = boolean;
};

template <class T, class F>
Status RunCompare(const Run& run) {
  RunTyped<typename ElementOf<T>::Type, boolean>(run, run.state<TypedState>().plan, F());
  return Status::kOk;
}

Status PrepareCompare(Prepare& ctx) { return PrepareTyped<TypedState>(ctx, DType::kBool); }

// -- one input ------------------------------------------------------------------------------------------------------

Status PrepareBool(Prepare& ctx) {
  if (ctx.inputs.size != 1 || !ctx.Has(0)) return ctx.Fail("got another number of inputs, expected 1");
  return ctx.SetOutput(0, DType::kBool, ctx.in(0).rank, ctx.in(0).dims);
}

template <class T, class F>
void MapToBool(const Run& run, const F& f) {
  const T* x = run.in(0).as<T>();
  auto* y = run.out(0).as<boolean>();
  run.ParallelFor(run.out(0).size(), kTypedGrain, [&](int64_t begin, int64_t end, int) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
  });
}

Status RunIsNan(const Run& run) {
  MapToBool<float>(run, [](float x) { return x != x; });
  return Status::kOk;
}

Status RunNot(const Run& run) {
  MapToBool<boolean>(run, [](boolean x) -> boolean { return x ^ 1; });
  return Status::kOk;
}

}  // namespace

#define RILLET_COMPARE(op, stem, dtype) const Kernel stem##_##dtype = {PrepareCompare, RunCompare<dtype, stem>};
#include "pointwise.inc"

const Kernel is_nan_f32 = {PrepareBool, RunIsNan};
const Kernel logical_not_bool = {PrepareBool, RunNot};

}  // namespace rillet
