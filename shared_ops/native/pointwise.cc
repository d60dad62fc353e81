// The float kernels of the pointwise ops: attributes, broadcasting and threads around the loops of
// isa/pointwise_loops.h.
#include "pointwise.h"

#include <limits>

#include "broadcast.h"
#include "isa/isa.h"
#include "kernel.h"

namespace rillet {

const PointwiseLoops& CurrentPointwiseLoops() {
  static constexpr IsaTable<PointwiseLoops> kTable = {&scalar::kPointwise,
                                                      RILLET_AVX2(&avx2::kPointwise),
                                                      RILLET_AVX512(&avx512::kPointwise),
                                                      nullptr,
                                                      RILLET_NEON(&neon::kPointwise),
                                                      nullptr};
  return kTable.Current();
}

namespace {

constexpr int kMaxParams = 2;
constexpr int64_t kGrain = 16384;  // elements a thread: a few microseconds of the cheapest op

// -- one input ------------------------------------------------------------------------------------------------------

struct UnaryState {
  UnaryLoop loop;
  float params[kMaxParams];
};

Status PrepareUnary(Prepare& ctx, Unary op, const char* const* attrs) {
  if (ctx.inputs.size != 1 || !ctx.Has(0))
    return ctx.Fail("got %lld inputs, expected 1", static_cast<long long>(ctx.inputs.size));
  auto* state = ctx.NewState<UnaryState>();
  if (!state) return ctx.status();
  state->loop = CurrentPointwiseLoops().unary[static_cast<int>(op)];
  for (int i = 0; attrs[i]; ++i) state->params[i] = ctx.Float(attrs[i]);
  if (ctx.status() != Status::kOk) return ctx.status();
  return ctx.SetOutputLike(0, ctx.in(0));
}

Status RunUnary(const Run& run) {
  const auto& state = run.state<UnaryState>();
  const float* x = run.in(0).as<float>();
  float* y = run.out(0).as<float>();
  run.ParallelFor(run.out(0).size(), kGrain, [&](int64_t begin, int64_t end, int) {
    state.loop(x + begin, y + begin, end - begin, state.params);
  });
  return Status::kOk;
}

template <Unary op>
struct UnaryAttrs {
  static const char* const kNames[kMaxParams + 1];
};
#define RILLET_UNARY_F32(op, stem, ...) \
  template <>                           \
  const char* const UnaryAttrs<Unary::k##op>::kNames[kMaxParams + 1] = {__VA_ARGS__};
#include "pointwise.inc"

// -- two inputs -----------------------------------------------------------------------------------------------------

// A short row that repeats is laid out this often in a buffer, so that the loops see long rows.
constexpr int64_t kTile = 1024, kShortRow = 256;

struct BinaryState {
  BroadcastPlan<2> plan;
  BinaryLoop loops[kOperandForms];
  float params[kMaxParams];
  int tiled;    // the operand that repeats a short row along the plan's rows; -1: none
  int64_t row;  // its length
};

// Where one operand repeats a short row while the other one goes on, joins the last two axes: the walk then sees one
// long row along which the repeating operand stands still at its first element.
void JoinShortRows(BinaryState* state) {
  BroadcastPlan<2>& plan = state->plan;
  state->tiled = -1;
  if (plan.rank < 2 || plan.row() > kShortRow || !plan.Varies(0) || !plan.Varies(1)) return;
  const int before = plan.rank - 2;
  for (int k = 0; k < 2; ++k) {
    if (plan.strides[k][before] != 0 || plan.strides[1 - k][before] != plan.row()) continue;
    state->tiled = k;
    state->row = plan.row();
    plan.dims[before] *= plan.row();
    plan.strides[1 - k][before] = 1;
    plan.rank -= 1;
    return;
  }
}

Status PrepareLoops(Prepare& ctx, Binary op, const float* bounds) {
  auto* state = ctx.NewState<BinaryState>();
  if (!state) return ctx.status();
  for (int form = 0; form < kOperandForms; ++form)
    state->loops[form] = CurrentPointwiseLoops().binary[static_cast<int>(op)][form];
  for (int i = 0; bounds && i < kMaxParams; ++i) state->params[i] = bounds[i];
  if (ctx.inputs.size != 2) return ctx.Fail("got %lld inputs, expected 2", static_cast<long long>(ctx.inputs.size));
  if (ctx.Has(1) && ctx.in(1).dtype != ctx.in(0).dtype)
    return ctx.Fail("dtypes of the inputs differ: got %s, expected %s", NameOf(ctx.in(1).dtype),
                    NameOf(ctx.in(0).dtype));
  const Status status = PrepareBroadcast(ctx, ctx.in(0).dtype, &state->plan);
  JoinShortRows(state);
  return status;
}

template <Binary op>
Status PrepareBinary(Prepare& ctx) {
  return PrepareLoops(ctx, op, nullptr);
}

// Add and Mul, with the activation that export fuses into them.
template <Binary plain, Binary clamped>
Status PrepareFused(Prepare& ctx) {
  const std::string_view activation = ctx.String("activation");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (activation == "NONE") return PrepareLoops(ctx, plain, nullptr);
  if (activation != "RELU" && activation != "RELU6")
    return ctx.Fail("activation: got '%.*s', expected NONE, RELU or RELU6", static_cast<int>(activation.size()),
                    activation.data());
  const float bounds[kMaxParams] = {0.0f, activation == "RELU6" ? 6.0f : std::numeric_limits<float>::infinity()};
  return PrepareLoops(ctx, clamped, bounds);
}
template <>
Status PrepareBinary<Binary::kAdd>(Prepare& ctx) {
  return PrepareFused<Binary::kAdd, Binary::kAddClamped>(ctx);
}
template <>
Status PrepareBinary<Binary::kMul>(Prepare& ctx) {
  return PrepareFused<Binary::kMul, Binary::kMulClamped>(ctx);
}

// `count` elements of a long row: `row` is the short one, `moving` the other operand, and the first element stands at
// `column` of the short row.
void RunTiled(const BinaryState& state, const float* row, const float* moving, float* y, int64_t column,
              int64_t count) {
  const int64_t length = kTile / state.row * state.row;
  float tile[kTile];
  for (int64_t i = 0, n = count < length ? count : length; i < n; ++i, ++column) {
    if (column == state.row) column = 0;
    tile[i] = row[column];
  }
  for (int64_t at = 0; at < count; at += length) {
    const float* operands[2] = {moving + at, moving + at};
    operands[state.tiled] = tile;
    state.loops[kBothVary](operands[0], operands[1], y + at, count - at < length ? count - at : length, state.params);
  }
}

Status RunBinary(const Run& run) {
  const auto& state = run.state<BinaryState>();
  const float* const in[2] = {run.in(0).as<float>(), run.in(1).as<float>()};
  float* y = run.out(0).as<float>();
  const Operands form = state.plan.Varies(1) ? (state.plan.Varies(0) ? kBothVary : kLeftFixed) : kRightFixed;
  run.ParallelFor(state.plan.size, kGrain, [&](int64_t begin, int64_t end, int) {
    ForRows(state.plan, begin, end, [&](int64_t at, const int64_t (&from)[2], int64_t count) {
      const float *a = in[0] + from[0], *b = in[1] + from[1];
      if (state.tiled >= 0)  // long rows hold whole short ones, so `at` tells the column
        RunTiled(state, state.tiled == 0 ? a : b, state.tiled == 0 ? b : a, y + at, at % state.row, count);
      else  // where neither operand varies along the row it is one element long
        state.loops[form](a, b, y + at, count, state.params);
    });
  });
  return Status::kOk;
}

#ifdef RILLET_TRAINING
// dy and y of a backprop op: one shape, no broadcasting.
template <Binary op>
Status PrepareGrad(Prepare& ctx) {
  const Status status = PrepareLoops(ctx, op, nullptr);
  if (status != Status::kOk) return status;
  bool same = ctx.in(0).rank == ctx.in(1).rank;
  for (int d = 0; same && d < ctx.in(0).rank; ++d) same = ctx.in(0).dims[d] == ctx.in(1).dims[d];
  return same ? status : ctx.Fail("dy and y have different shapes");
}
#endif

}  // namespace

#define RILLET_UNARY_F32(op, stem, ...) \
  const Kernel stem##_f32 = {           \
      [](Prepare& ctx) { return PrepareUnary(ctx, Unary::k##op, UnaryAttrs<Unary::k##op>::kNames); }, RunUnary};
#define RILLET_BINARY_F32(op, stem) const Kernel stem##_f32 = {PrepareBinary<Binary::k##op>, RunBinary};
#define RILLET_GRAD_F32(op, stem) const Kernel stem##_f32 = {PrepareGrad<Binary::k##op>, RunBinary};
#include "pointwise.inc"

}  // namespace rillet
