// Integer kernels of the pointwise ops. Sums and products wrap; division by zero and negative exponents fail the run.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernel.h"
#include "requantize.h"
#include "typed_rows.h"

namespace rillet {
namespace {

namespace ints {

template <class T>
T Wrap(std::make_unsigned_t<T> x) {
  return static_cast<T>(x);
}
template <class T>
std::make_unsigned_t<T> Bits(T x) {
  return static_cast<std::make_unsigned_t<T>>(x);
}

template <class T>
T neg(T x) {
  return Wrap<T>(0 - Bits(x));
}
template <class T>
T abs(T x) {
  return x < 0 ? neg(x) : x;
}
template <class T>
T sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}
template <class T>
T square(T x) {
  return Wrap<T>(Bits(x) * Bits(x));
}
template <class T>
T relu(T x) {
  return x < 0 ? 0 : x;
}
template <class T>
T relu6(T x) {
  return x < 0 ? 0 : x > 6 ? 6 : x;
}

template <class T>
T add(T a, T b) {
  return Wrap<T>(Bits(a) + Bits(b));
}
template <class T>
T sub(T a, T b) {
  return Wrap<T>(Bits(a) - Bits(b));
}
template <class T>
T mul(T a, T b) {
  return Wrap<T>(Bits(a) * Bits(b));
}
template <class T>
T maximum(T a, T b) {
  return a >= b ? a : b;
}
template <class T>
T minimum(T a, T b) {
  return a <= b ? a : b;
}
template <class T>
T squared_difference(T a, T b) {
  return square(sub(a, b));
}
template <class T>
T floor_div(T a, T b) {
  if (b == -1) return neg(a);  // the smallest integer stays as it is
  const T q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
template <class T>
T floor_mod(T a, T b) {
  if (b == -1) return 0;
  const T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T>
T pow(T a, T b) {
  auto power = Bits<T>(1), base = Bits(a);
  for (auto e = Bits(b); e != 0; e >>= 1, base *= base)
    if (e & 1) power *= base;
  return Wrap<T>(power);
}

}  // namespace ints

// -- one input ------------------------------------------------------------------------------------------------------

Status PrepareSame(Prepare& ctx) {
  if (ctx.inputs.size != 1 || !ctx.Has(0)) return ctx.Fail("got another number of inputs, expected 1");
  return ctx.SetOutputLike(0, ctx.in(0));
}

template <class T, T (*f)(T)>
Status RunSame(const Run& run) {
  const T* x = run.in(0).as<T>();
  T* y = run.out(0).as<T>();
  run.ParallelFor(run.out(0).size(), kTypedGrain, [&](int64_t begin, int64_t end, int) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
  });
  return Status::kOk;
}

// -- two inputs -----------------------------------------------------------------------------------------------------

enum class Rule { kNone, kNoZero, kNotNegative };  // what the right operand must obey

struct IntState {
  BroadcastPlan<2> plan;
  bool clamped;  // by a fused activation, to [0, high]
  int64_t high;
};

template <bool fused>
Status PrepareInts(Prepare& ctx) {
  const Status status = PrepareTyped<IntState>(ctx, ctx.in(0).dtype);
  if (!fused || status != Status::kOk) return status;
  const std::string_view activation = ctx.String("activation");
  auto* state = static_cast<IntState*>(ctx.state);
  state->clamped = activation == "RELU" || activation == "RELU6";
  state->high = activation == "RELU6" ? 6 : std::numeric_limits<int64_t>::max();
  if (!state->clamped && activation != "NONE") (void)ctx.Fail("activation: expected NONE, RELU or RELU6");
  return ctx.status();
}

template <class T>
Status Check(const Run& run, Rule rule) {
  if (rule == Rule::kNone) return Status::kOk;
  const T* b = run.in(1).as<T>();
  for (int64_t i = 0, n = run.in(1).size(); i < n; ++i) {
    if (rule == Rule::kNoZero && b[i] == 0)
      return run.Fail("an integer divisor is 0: got 0 at element %lld, expected another number",
                      static_cast<long long>(i));
    if (rule == Rule::kNotNegative && b[i] < 0)
      return run.Fail("an integer exponent is negative: got %lld at element %lld, expected 0 or more",
                      static_cast<long long>(b[i]), static_cast<long long>(i));
  }
  return Status::kOk;
}

template <class T, T (*f)(T, T), Rule rule>
Status RunInts(const Run& run) {
  const auto& state = run.state<IntState>();
  if (state.plan.size == 0) return Status::kOk;
  if (const Status status = Check<T>(run, rule); status != Status::kOk) return status;
  RunTyped<T, T>(run, state.plan, [](T a, T b) { return f(a, b); });
  if (!state.clamped) return Status::kOk;
  T* y = run.out(0).as<T>();
  const T high = static_cast<T>(std::min<int64_t>(state.high, std::numeric_limits<T>::max()));
  for (int64_t i = 0; i < state.plan.size; ++i) y[i] = y[i] < 0 ? 0 : y[i] > high ? high : y[i];
  return Status::kOk;
}

// Values of one scale compare as they are stored.
Status PrepareSameScale(Prepare& ctx) {
  const Status status = PrepareTyped<IntState>(ctx, DType::kI8);
  const Tensor& y = ctx.out(0);
  for (int i = 0; i < 2 && ctx.status() == Status::kOk; ++i)
    if (ctx.in(i).quant.count > 0 || y.quant.count > 0)
      if (const Status s = CheckSameQuant(ctx, ctx.in(i), y, "output 0"); s != Status::kOk) return s;
  return status;
}

enum class Name {
#define RILLET_BINARY_INT(op, stem) k##op,
#include "pointwise.inc"
};
constexpr bool IsFused(Name n) { return n == Name::kAdd || n == Name::kMul; }
constexpr Rule RuleOf(Name n) {
  return n == Name::kFloorDiv || n == Name::kFloorMod ? Rule::kNoZero
         : n == Name::kPow                            ? Rule::kNotNegative
                                                      : Rule::kNone;
}

}  // namespace

#define RILLET_UNARY_INT(op, stem)                                                \
  const Kernel stem##_i32 = {PrepareSame, RunSame<int32_t, ints::stem<int32_t>>}; \
  const Kernel stem##_i64 = {PrepareSame, RunSame<int64_t, ints::stem<int64_t>>};
#define RILLET_BINARY_INT(op, stem)                                                       \
  const Kernel stem##_i32 = {PrepareInts<IsFused(Name::k##op)>,                           \
                             RunInts<int32_t, ints::stem<int32_t>, RuleOf(Name::k##op)>}; \
  const Kernel stem##_i64 = {PrepareInts<IsFused(Name::k##op)>,                           \
                             RunInts<int64_t, ints::stem<int64_t>, RuleOf(Name::k##op)>};
#define RILLET_SAME_SCALE_I8(op, stem) \
  const Kernel stem##_i8 = {PrepareSameScale, RunInts<int8_t, ints::stem<int8_t>, Rule::kNone>};
#include "pointwise.inc"

}  // namespace rillet
