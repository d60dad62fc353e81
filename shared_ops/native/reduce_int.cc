// Reductions of integers and booleans: exact, so their order does not matter.
#include <limits>

#include "reduce_plan.h"

namespace rillet {
namespace {

// Sums and products wrap around, as unsigned arithmetic does.
template <class T>
struct Add {
  using U = std::make_unsigned_t<T>;
  static constexpr T kStart = 0;
  static T Of(T a, T b) { return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b))); }
};
template <class T>
struct Multiply {
  using U = std::make_unsigned_t<T>;
  static constexpr T kStart = 1;
  static T Of(T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); }
};
template <class T>
struct Larger {
  static constexpr T kStart = std::numeric_limits<T>::lowest();
  static T Of(T a, T b) { return a < b ? b : a; }
};
template <class T>
struct Smaller {
  static constexpr T kStart = std::numeric_limits<T>::max();
  static T Of(T a, T b) { return b < a ? b : a; }
};
template <class T>
struct Either {
  static constexpr T kStart = 0;
  static T Of(T a, T b) { return a | b; }
};
template <class T>
struct Both {
  static constexpr T kStart = 1;
  static T Of(T a, T b) { return a & b; }
};

template <DType dtype>
Status PrepareAs(Prepare& ctx) {
  ReducePlan* plan = ctx.NewState<ReducePlan>();
  if (!plan) return ctx.status();
  if (ctx.in(0).dtype != dtype) return ctx.Fail("x: got %s, expected %s", NameOf(ctx.in(0).dtype), NameOf(dtype));
  return PrepareReduction(ctx, 0, dtype, plan);
}

// Results [begin, end), all in the same place of `outer`: the columns side by side.
template <class T, class Op>
void RunColumns(const ReducePlan& p, const T* x, T* y, int64_t begin, int64_t end) {
  for (int64_t o = begin; o < end;) {
    const int64_t first = o % p.columns, width = end - o < p.columns - first ? end - o : p.columns - first;
    const T* from = x + p.Start(o);
    for (int64_t c = 0; c < width; ++c) y[o + c] = Op::kStart;
    for (int64_t r = 0; r < p.count; ++r, from += p.columns)
      for (int64_t c = 0; c < width; ++c) y[o + c] = Op::Of(y[o + c], from[c]);
    o += width;
  }
}

template <class T, class Op, bool mean = false>
Status RunOver(const Run& run) {
  const ReducePlan& p = run.state<ReducePlan>();
  const T* x = run.in(0).as<const T>();
  T* y = run.out(0).as<T>();
  if (p.outputs == 0) return Status::kOk;
  run.ParallelFor(p.outputs, 1 + 16384 / (p.count + 1), [&](int64_t begin, int64_t end, int) {
    if (p.layout == ReducePlan::Layout::kColumns && p.count > 0) {
      RunColumns<T, Op>(p, x, y, begin, end);
    } else {
      for (int64_t o = begin; o < end; ++o) {
        const T* from = x + p.Start(o);
        T total = Op::kStart;
        p.ForEach([&](int64_t at) { total = Op::Of(total, from[at]); });
        y[o] = total;
      }
    }
    if (mean)  // toward zero; the only division that could overflow, lowest / -1, cannot occur
      for (int64_t o = begin; o < end; ++o) y[o] = p.count ? static_cast<T>(y[o] / static_cast<T>(p.count)) : T{0};
  });
  return Status::kOk;
}

}  // namespace

const Kernel sum_i32 = {PrepareAs<DType::kI32>, RunOver<int32_t, Add<int32_t>>};
const Kernel sum_i64 = {PrepareAs<DType::kI64>, RunOver<int64_t, Add<int64_t>>};
const Kernel mean_i32 = {PrepareAs<DType::kI32>, RunOver<int32_t, Add<int32_t>, true>};
const Kernel mean_i64 = {PrepareAs<DType::kI64>, RunOver<int64_t, Add<int64_t>, true>};
const Kernel prod_i32 = {PrepareAs<DType::kI32>, RunOver<int32_t, Multiply<int32_t>>};
const Kernel prod_i64 = {PrepareAs<DType::kI64>, RunOver<int64_t, Multiply<int64_t>>};
const Kernel max_i32 = {PrepareAs<DType::kI32>, RunOver<int32_t, Larger<int32_t>>};
const Kernel max_i64 = {PrepareAs<DType::kI64>, RunOver<int64_t, Larger<int64_t>>};
const Kernel max_i8 = {PrepareAs<DType::kI8>, RunOver<int8_t, Larger<int8_t>>};
const Kernel max_u8 = {PrepareAs<DType::kU8>, RunOver<uint8_t, Larger<uint8_t>>};
const Kernel min_i32 = {PrepareAs<DType::kI32>, RunOver<int32_t, Smaller<int32_t>>};
const Kernel min_i64 = {PrepareAs<DType::kI64>, RunOver<int64_t, Smaller<int64_t>>};
const Kernel min_i8 = {PrepareAs<DType::kI8>, RunOver<int8_t, Smaller<int8_t>>};
const Kernel min_u8 = {PrepareAs<DType::kU8>, RunOver<uint8_t, Smaller<uint8_t>>};
const Kernel any_bool = {PrepareAs<DType::kBool>, RunOver<uint8_t, Either<uint8_t>>};
const Kernel all_bool = {PrepareAs<DType::kBool>, RunOver<uint8_t, Both<uint8_t>>};

}  // namespace rillet
