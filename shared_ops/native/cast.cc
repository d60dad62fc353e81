// Cast between all dtypes. Float to integer cuts off the fraction, goes to the nearest end where the value does not
// fit, and makes NaN 0, on every CPU. Integers wrap. Anything but 0 is true.
#include <limits>
#include <type_traits>

#include "kernel.h"

namespace rillet {
namespace {

struct CastState {
  void (*loop)(const void* x, void* y, int64_t begin, int64_t end);
};

struct Boolean {
  uint8_t v;
};  // stored as 0 or 1

template <class To, class From>
To Convert(From x) {
  if constexpr (std::is_same_v<From, Boolean>) {
    return Convert<To>(x.v);
  } else if constexpr (std::is_same_v<To, Boolean>) {
    return {static_cast<uint8_t>(x != From(0))};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr To kLow = std::numeric_limits<To>::min(), kHigh = std::numeric_limits<To>::max();
    // As floats: low is exact; high + 1 is a power of two, so exact too. What lies between fits once cut off, but for
    // numbers in (low - 1, low), which become low either way.
    constexpr From low = static_cast<From>(kLow), beyond = static_cast<From>(kHigh / 2 + 1) * 2;
    const bool above = x >= beyond, below = x <= low, nan = x != x;
    const From safe = above || below || nan ? From(0) : x;
    const To inside = static_cast<To>(safe);
    return above ? kHigh : below ? kLow : inside;
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void Loop(const void* x, void* y, int64_t begin, int64_t end) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(y);
  for (int64_t i = begin; i < end; ++i) to[i] = Convert<To>(from[i]);
}

using CastLoop = void (*)(const void*, void*, int64_t, int64_t);

template <class From>
CastLoop LoopFrom(DType to) {
  switch (to) {
    case DType::kF32: return Loop<From, float>;
    case DType::kF64: return Loop<From, double>;
    case DType::kI8: return Loop<From, int8_t>;
    case DType::kU8: return Loop<From, uint8_t>;
    case DType::kI32: return Loop<From, int32_t>;
    case DType::kI64: return Loop<From, int64_t>;
    case DType::kBool: return Loop<From, Boolean>;
  }
  return nullptr;
}

CastLoop LoopOf(DType from, DType to) {
  switch (from) {
    case DType::kF32: return LoopFrom<float>(to);
    case DType::kF64: return LoopFrom<double>(to);
    case DType::kI8: return LoopFrom<int8_t>(to);
    case DType::kU8: return LoopFrom<uint8_t>(to);
    case DType::kI32: return LoopFrom<int32_t>(to);
    case DType::kI64: return LoopFrom<int64_t>(to);
    case DType::kBool: return LoopFrom<Boolean>(to);
  }
  return nullptr;
}

Status PrepareCast(Prepare& ctx) {
  if (ctx.inputs.size != 1 || !ctx.Has(0)) return ctx.Fail("got another number of inputs, expected 1");
  auto* state = ctx.NewState<CastState>();
  const std::string_view name = ctx.String("dtype");
  if (ctx.status() != Status::kOk) return ctx.status();
  int to = 0;
  while (to < kDTypeCount && name != NameOf(static_cast<DType>(to))) ++to;
  if (to == kDTypeCount)
    return ctx.Fail("attribute 'dtype': got '%.*s', expected f32, f64, i8, u8, i32, i64 or bool",
                    static_cast<int>(name.size()), name.data());
  state->loop = LoopOf(ctx.in(0).dtype, static_cast<DType>(to));
  return ctx.SetOutput(0, static_cast<DType>(to), ctx.in(0).rank, ctx.in(0).dims);
}

Status RunCast(const Run& run) {
  const auto& state = run.state<CastState>();
  const void* x = run.in(0).data;
  void* y = run.out(0).data;
  run.ParallelFor(run.out(0).size(), 16384, [&](int64_t begin, int64_t end, int) { state.loop(x, y, begin, end); });
  return Status::kOk;
}

}  // namespace

const Kernel cast_any = {PrepareCast, RunCast};

}  // namespace rillet
