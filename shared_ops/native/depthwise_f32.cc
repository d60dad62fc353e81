#include "depthwise_f32.h"

#include <algorithm>

#include "isa/isa.h"
#include "strided_copy.h"

namespace rillet {
namespace {

const IsaTable<DepthwiseKernels> kTable = {&scalar::kDepthwiseF32, RILLET_AVX2(&avx2::kDepthwiseF32),
                                           RILLET_AVX512(&avx512::kDepthwiseF32), nullptr,
                                           RILLET_NEON(&neon::kDepthwiseF32)};

long long LL(int64_t v) { return static_cast<long long>(v); }

}  // namespace

Status PrepareDepthwise(Prepare& ctx, const int64_t image[4], const int64_t filter[4], Depthwise* d) {
  WindowAttrs attrs;
  if (Status s = ReadWindowAttrs(ctx, &attrs); s != Status::kOk) return s;
  if (filter[2] != image[3]) return ctx.Fail("channels disagree: got %lld, expected %lld", LL(filter[2]), LL(image[3]));
  if (Status s = ResolveWindow(ctx, attrs, 0, image[1], filter[0], &d->rows); s != Status::kOk) return s;
  if (Status s = ResolveWindow(ctx, attrs, 1, image[2], filter[1], &d->columns); s != Status::kOk) return s;
  if (filter[0] > kMaxTaps || filter[1] > kMaxTaps || filter[3] > kMaxTaps ||
      filter[0] * filter[1] * std::max<int64_t>(1, filter[3]) > kMaxTaps)
    return ctx.Fail("window of a depthwise convolution: got %lld by %lld by %lld, expected a product of at most %d",
                    LL(filter[0]), LL(filter[1]), LL(filter[3]), kMaxTaps);
  d->images = image[0];
  d->channels = image[3];
  d->multiplier = filter[3];
  d->kernels = &kTable.Current();
  return Status::kOk;
}

Status AllocateZeros(Prepare& ctx, int64_t floats, Depthwise* d) {
  d->zeros = ctx.AllocateArray<float>(floats);
  return d->zeros ? Status::kOk : ctx.status();
}

Status ReadShape4(Prepare& ctx, int input, int64_t shape[4]) {
  int64_t dims[kMaxRank];
  const int rank = ReadShape(ctx, input, dims);
  if (rank < 0) return ctx.status();
  if (rank != 4) return ctx.Fail("input %d: got a shape of %d dimensions, expected 4", input, rank);
  for (int i = 0; i < 4; ++i) {
    shape[i] = dims[i];
    if (shape[i] < 0 || shape[i] > kMaxBytes)
      return ctx.Fail("input %d: dimension %d: got %lld, expected at least 0", input, i, LL(shape[i]));
  }
  return Status::kOk;
}

int64_t PackedFilterSize(const Depthwise& d, int64_t taps, int64_t channels) {
  const int64_t lanes = d.kernels->lanes;
  return (channels + lanes - 1) / lanes * lanes * taps;
}

void PackDepthwiseFilter(const Depthwise& d, const float* w, int64_t taps, int64_t tap_step, int64_t channels,
                         int64_t channel_step, float* packed) {
  const int64_t lanes = d.kernels->lanes;
  for (int64_t c = 0; c < channels; c += lanes)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t j = 0; j < lanes; ++j)
        *packed++ = c + j < channels ? w[t * tap_step + (c + j) * channel_step] : 0.0f;
}

void RepeatChannels(const float* from, int64_t pixels, int64_t channels, int64_t multiplier, float* to) {
  for (int64_t i = 0; i < pixels * channels; ++i)
    for (int64_t m = 0; m < multiplier; ++m) *to++ = from[i];
}

}  // namespace rillet
