// BiasAdd: one number a channel, the last axis.
#include <algorithm>

#include "kernel.h"

namespace rillet {
namespace {

Status PrepareBiasAdd(Prepare& ctx) {
  const Tensor &x = ctx.in(0), &bias = ctx.in(1);
  if (bias.dtype != DType::kF32)
    return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(bias.dtype));
  if (x.rank < 1) return ctx.Fail("rank of x: got 0, expected at least 1");
  if (bias.rank != 1) return ctx.Fail("rank of bias: got %d, expected 1", bias.rank);
  if (bias.dims[0] != x.dims[x.rank - 1])
    return ctx.Fail("length of the bias: got %lld, expected %lld", static_cast<long long>(bias.dims[0]),
                    static_cast<long long>(x.dims[x.rank - 1]));
  return ctx.SetOutputLike(0, x);
}

Status RunBiasAdd(const Run& run) {
  const float *x = run.in(0).as<float>(), *bias = run.in(1).as<float>();
  float* y = run.out(0).as<float>();
  const int64_t channels = run.in(1).dims[0];
  if (channels == 0) return Status::kOk;
  const int64_t rows = run.in(0).size() / channels;
  run.ParallelFor(rows, std::max<int64_t>(1, 32768 / channels), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const float* from = x + i * channels;
      float* to = y + i * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = from[c] + bias[c];
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel bias_add_f32 = {PrepareBiasAdd, RunBiasAdd};

}  // namespace rillet
