// One step of an optimizer, in place, in one pass over the variable. The formulas and their source: state_ops/apply.py.
// Inputs: the variable and its slots, [step,] lr, gradient.
#include "kernel.h"

namespace rillet {
namespace {

constexpr int64_t kGrain = 1 << 14;

struct State {
  int slots = 0;  // variables beside the first
  bool has_step = false;
  float momentum = 0;
  bool nesterov = false;
  double beta1 = 0, beta2 = 0;
  double epsilon = 0, decay = 0;
  bool epsilon_hat = false, epsilon_inside = false, decay_times_lr = false;

  int lr() const { return 1 + slots + has_step; }
  int grad() const { return lr() + 1; }
};

Status CheckInputs(Prepare& ctx, const State& s) {
  if (ctx.status() != Status::kOk) return ctx.status();
  for (int i = 0; i <= s.slots; ++i)
    if (ctx.NeedVariable(i) != Status::kOk) return ctx.status();
  const Tensor& var = ctx.in(0);
  if (s.has_step && (ctx.in(1 + s.slots).dtype != DType::kI64 || ctx.in(1 + s.slots).rank != 0))
    return ctx.Fail("step: expected an i64 scalar");
  if (ctx.in(s.lr()).dtype != DType::kF32 || ctx.in(s.lr()).rank != 0) return ctx.Fail("lr: expected an f32 scalar");
  for (int i = 1; i <= s.grad(); ++i) {
    if (i > s.slots && i != s.grad()) continue;
    const Tensor& t = ctx.in(i);
    bool same = t.dtype == DType::kF32 && t.rank == var.rank;
    for (int a = 0; same && a < var.rank; ++a) same = t.dims[a] == var.dims[a];
    if (!same) return ctx.Fail("input %d: expected f32 of the shape of var", i);
  }
  return Status::kOk;
}

template <int slots, bool has_step = false>
State* Start(Prepare& ctx) {
  State* s = ctx.NewState<State>();
  if (!s) return nullptr;
  s->slots = slots;
  s->has_step = has_step;
  return s;
}

Status PrepareGradientDescent(Prepare& ctx) {
  State* s = Start<0>(ctx);
  return s ? CheckInputs(ctx, *s) : ctx.status();
}

Status PrepareMomentum(Prepare& ctx) {
  State* s = Start<1>(ctx);
  if (!s) return ctx.status();
  s->momentum = ctx.Float("momentum");
  s->nesterov = ctx.Bool("nesterov");
  return CheckInputs(ctx, *s);
}

template <bool decoupled_decay>
Status PrepareAdam(Prepare& ctx) {
  State* s = Start<2, true>(ctx);
  if (!s) return ctx.status();
  s->beta1 = ctx.Double("beta1");
  s->beta2 = ctx.Double("beta2");
  s->epsilon = ctx.Double("epsilon");
  s->epsilon_hat = ctx.Bool("epsilon_hat");
  if (decoupled_decay) {
    s->decay = ctx.Double("weight_decay");
    s->decay_times_lr = ctx.Bool("decay_times_lr");
  }
  return CheckInputs(ctx, *s);
}

Status PrepareRmsProp(Prepare& ctx) {
  State* s = Start<2>(ctx);
  if (!s) return ctx.status();
  s->decay = ctx.Double("decay");
  s->momentum = ctx.Float("momentum");
  s->epsilon = ctx.Double("epsilon");
  s->epsilon_inside = ctx.Bool("epsilon_inside");
  return CheckInputs(ctx, *s);
}

Status PrepareAdagrad(Prepare& ctx) {
  State* s = Start<1>(ctx);
  if (!s) return ctx.status();
  s->epsilon = ctx.Double("epsilon");
  return CheckInputs(ctx, *s);
}

Status RunGradientDescent(const Run& run) {
  const State& s = run.state<State>();
  const float lr = *run.in(s.lr()).as<const float>();
  float* __restrict var = run.in(0).as<float>();
  const float* __restrict g = run.in(s.grad()).as<const float>();
  run.ParallelFor(run.in(0).size(), kGrain, [=](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) var[i] -= lr * g[i];
  });
  return Status::kOk;
}

Status RunMomentum(const Run& run) {
  const State& s = run.state<State>();
  const float lr = *run.in(s.lr()).as<const float>(), m = s.momentum;
  float* __restrict var = run.in(0).as<float>(), * __restrict accum = run.in(1).as<float>();
  const float* __restrict g = run.in(s.grad()).as<const float>();
  const bool nesterov = s.nesterov;
  run.ParallelFor(run.in(0).size(), kGrain, [=](int64_t begin, int64_t end, int) {
    if (nesterov) {
      for (int64_t i = begin; i < end; ++i) {
        accum[i] = accum[i] * m + g[i];
        var[i] -= g[i] * lr + accum[i] * m * lr;
      }
    } else {
      for (int64_t i = begin; i < end; ++i) {
        accum[i] = accum[i] * m + g[i];
        var[i] -= accum[i] * lr;
      }
    }
  });
  return Status::kOk;
}

// base^n by repeated squaring: the same bits everywhere, which pow() does not promise.
double Power(double base, int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return result;
}

struct AdamStep {
  float lr_t, share1, share2, epsilon, decay;

  void Apply(float* __restrict var, float* __restrict m, float* __restrict v, const float* __restrict g,
             int64_t n) const {
    const AdamStep a = *this;  // a copy: stores through the pointers cannot change it
    for (int64_t i = 0; i < n; ++i) {
      m[i] += (g[i] - m[i]) * a.share1;
      v[i] += (g[i] * g[i] - v[i]) * a.share2;
      var[i] = (var[i] - var[i] * a.decay) - a.lr_t * m[i] / (__builtin_sqrtf(v[i]) + a.epsilon);
    }
  }
};

Status RunAdam(const Run& run) {
  const State& s = run.state<State>();
  const float lr = *run.in(s.lr()).as<const float>();
  const int64_t t = *run.in(1 + s.slots).as<const int64_t>() + 1;
  const double root = __builtin_sqrt(1 - Power(s.beta2, t));
  AdamStep step;
  step.lr_t = static_cast<float>(static_cast<double>(lr) * root / (1 - Power(s.beta1, t)));
  step.epsilon = static_cast<float>(s.epsilon_hat ? s.epsilon : s.epsilon * root);
  step.share1 = static_cast<float>(1 - s.beta1);
  step.share2 = static_cast<float>(1 - s.beta2);
  step.decay = static_cast<float>(s.decay * (s.decay_times_lr ? static_cast<double>(lr) : 1.0));
  float *var = run.in(0).as<float>(), *m = run.in(1).as<float>(), *v = run.in(2).as<float>();
  const float* g = run.in(s.grad()).as<const float>();
  run.ParallelFor(run.in(0).size(), kGrain, [&](int64_t begin, int64_t end, int) {
    step.Apply(var + begin, m + begin, v + begin, g + begin, end - begin);
  });
  return Status::kOk;
}

struct RmsPropStep {
  float lr, momentum, share, inside, outside;

  void Apply(float* __restrict var, float* __restrict ms, float* __restrict mom, const float* __restrict g,
             int64_t n) const {
    const RmsPropStep a = *this;
    for (int64_t i = 0; i < n; ++i) {
      ms[i] += (g[i] * g[i] - ms[i]) * a.share;
      mom[i] = mom[i] * a.momentum + a.lr * g[i] / (__builtin_sqrtf(ms[i] + a.inside) + a.outside);
      var[i] -= mom[i];
    }
  }
};

Status RunRmsProp(const Run& run) {
  const State& s = run.state<State>();
  const float epsilon = static_cast<float>(s.epsilon);
  const RmsPropStep step{*run.in(s.lr()).as<const float>(), s.momentum, static_cast<float>(1 - s.decay),
                         s.epsilon_inside ? epsilon : 0.0f, s.epsilon_inside ? 0.0f : epsilon};
  float *var = run.in(0).as<float>(), *ms = run.in(1).as<float>(), *mom = run.in(2).as<float>();
  const float* g = run.in(s.grad()).as<const float>();
  run.ParallelFor(run.in(0).size(), kGrain, [&](int64_t begin, int64_t end, int) {
    step.Apply(var + begin, ms + begin, mom + begin, g + begin, end - begin);
  });
  return Status::kOk;
}

Status RunAdagrad(const Run& run) {
  const State& s = run.state<State>();
  const float lr = *run.in(s.lr()).as<const float>(), epsilon = static_cast<float>(s.epsilon);
  float* __restrict var = run.in(0).as<float>(), * __restrict accum = run.in(1).as<float>();
  const float* __restrict g = run.in(s.grad()).as<const float>();
  run.ParallelFor(run.in(0).size(), kGrain, [=](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      accum[i] += g[i] * g[i];
      var[i] -= lr * g[i] / (__builtin_sqrtf(accum[i]) + epsilon);
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel apply_gradient_descent_f32 = {PrepareGradientDescent, RunGradientDescent};
const Kernel apply_momentum_f32 = {PrepareMomentum, RunMomentum};
const Kernel apply_adam_f32 = {PrepareAdam<false>, RunAdam};
const Kernel apply_adamw_f32 = {PrepareAdam<true>, RunAdam};
const Kernel apply_rmsprop_f32 = {PrepareRmsProp, RunRmsProp};
const Kernel apply_adagrad_f32 = {PrepareAdagrad, RunAdagrad};

}  // namespace rillet
