#include "products_s8.h"

namespace rillet {
namespace {

const IsaTable<GemmS8> kGemm = {&scalar::kGemmS8,
                                RILLET_AVX2(&avx2::kGemmS8),
                                nullptr,
                                RILLET_AVX512VNNI(&avx512vnni::kGemmS8),
                                RILLET_NEON(&neon::kGemmS8),
                                RILLET_NEONDOT(&neondot::kGemmS8)};
const IsaTable<DepthwiseS8> kDepthwise = {&scalar::kDepthwiseS8,
                                          RILLET_AVX2(&avx2::kDepthwiseS8),
                                          nullptr,
                                          RILLET_AVX512VNNI(&avx512vnni::kDepthwiseS8),
                                          RILLET_NEON(&neon::kDepthwiseS8),
                                          RILLET_NEONDOT(&neondot::kDepthwiseS8)};

constexpr int64_t kBlockBytes = 24 * 1024;  // of activations: leaves room for a panel of weights in a 32 KB cache

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The sum of channel n's weights, and the largest |accumulator| that it can reach.
struct ChannelSum {
  int64_t sum = 0, reach = 0;
};
ChannelSum SumChannel(const WeightsS8& w, int64_t n) {
  ChannelSum s;
  for (int64_t k = 0; k < w.tap_count * w.depth; ++k) {
    const int64_t v = w.data[k * w.k_stride + n * w.n_stride];
    s.sum += v;
    s.reach += v < 0 ? -v : v;
  }
  const int64_t bias = w.bias ? w.bias[n] : 0;
  s.reach = 256 * s.reach + (bias < 0 ? -bias : bias);
  return s;
}

// Bias with the zero point folded in, and scale, of the channel at packed position `at`.
Status PackChannel(Prepare& ctx, const WeightsS8& w, int64_t n, int64_t offset, const TensorQuant& x,
                   const OutputQuant& y, int32_t* bias, float* scale, bool* clamp) {
  const ChannelSum s = SumChannel(w, n);
  const uint32_t folded = static_cast<uint32_t>((w.bias ? w.bias[n] : 0) - (x.zero_point + offset) * s.sum);
  std::memcpy(bias, &folded, sizeof folded);  // wraps as the accumulators do; the final sum fits
  *scale = RequantizeScale(x.scale, w.scale[n / (w.n / w.scale_count)], y.scale);
  if (!(*scale > 0 && *scale < 256))
    return ctx.Fail(
        "scale of input times scale of weights over scale of output, channel %lld: got %g, expected above 0 "
        "and below 256",
        static_cast<long long>(n), static_cast<double>(*scale));
  *clamp |= static_cast<double>(s.reach) * static_cast<double>(*scale) >= 2147483648.0;
  return Status::kOk;
}

Status CheckWeights(Prepare& ctx, const WeightsS8& w) {
  const int64_t k = w.tap_count * w.depth;
  int64_t largest_bias = 0;
  for (int64_t n = 0; w.bias && n < w.n; ++n) {
    const int64_t b = w.bias[n] < 0 ? -static_cast<int64_t>(w.bias[n]) : w.bias[n];
    largest_bias = b > largest_bias ? b : largest_bias;
  }
  if (k * 256 * 127 + largest_bias >= (int64_t{1} << 31))
    return ctx.Fail("the sum of %lld int8 products may leave int32; keep this layer in float",
                    static_cast<long long>(k));
  for (int64_t n = 0; n < w.n; ++n)
    for (int64_t i = 0; i < k; ++i)
      if (w.data[i * w.k_stride + n * w.n_stride] == kQMin)
        return ctx.Fail("weights are not symmetric: got -128, expected -127 to 127");
  return Status::kOk;
}

Status AllocatePacked(Prepare& ctx, const WeightsS8& w, const OutputQuant& y, int64_t bytes, int64_t columns,
                      PackedS8* packed) {
  if (Status s = CheckWeights(ctx, w); s != Status::kOk) return s;
  packed->b = ctx.AllocateArray<int8_t>(bytes + 64);
  packed->bias = ctx.AllocateArray<int32_t>(columns);
  packed->scale = ctx.AllocateArray<float>(columns);
  if (!packed->b || !packed->bias || !packed->scale) return Status::kOutOfMemory;
  packed->epilogue = {y.zero_point, y.low, y.high, false};
  packed->tap_count = w.tap_count;
  packed->depth = w.depth;
  packed->n = w.n;
  return Status::kOk;
}

}  // namespace

const GemmS8& CurrentGemmS8() { return kGemm.Current(); }
const DepthwiseS8& CurrentDepthwiseS8() { return kDepthwise.Current(); }

Status PackGemm(Prepare& ctx, const GemmS8& isa, const WeightsS8& w, const TensorQuant& x, const OutputQuant& y,
                PackedS8* packed) {
  const int64_t groups = (w.depth + isa.group - 1) / isa.group, columns = RoundUp(w.n, isa.step);
  if (Status s = AllocatePacked(ctx, w, y, w.tap_count * groups * isa.group * columns, columns, packed);
      s != Status::kOk)
    return s;
  packed->panels = (w.n + isa.width - 1) / isa.width;
  auto* b = const_cast<int8_t*>(packed->b);
  for (int64_t first = 0; first < w.n; first += isa.width) {
    const int width = static_cast<int>(columns - first < isa.width ? columns - first : isa.width);
    for (int i = 0; i < width; ++i) {
      const int64_t n = first + isa.Channel(width, i);
      if (n >= w.n) continue;  // memory is zeroed
      for (int64_t t = 0; t < w.tap_count; ++t)
        for (int64_t d = 0; d < w.depth; ++d)
          b[((t * groups + d / isa.group) * width + i) * isa.group + d % isa.group] =
              w.data[(t * w.depth + d) * w.k_stride + n * w.n_stride];
      if (Status s = PackChannel(ctx, w, n, isa.form_offset, x, y, const_cast<int32_t*>(packed->bias) + first + i,
                                 const_cast<float*>(packed->scale) + first + i, &packed->epilogue.clamp);
          s != Status::kOk)
        return s;
    }
    b += w.tap_count * groups * isa.group * width;
  }
  return Status::kOk;
}

Status PackDepthwise(Prepare& ctx, const DepthwiseS8& isa, const WeightsS8& w, const TensorQuant& x,
                     const OutputQuant& y, PackedS8* packed) {
  const int64_t columns = RoundUp(w.n, isa.width), taps = RoundUp(w.tap_count, isa.group);
  if (Status s = AllocatePacked(ctx, w, y, taps * columns * isa.weight_bytes, columns, packed); s != Status::kOk)
    return s;
  packed->panels = columns / isa.width;
  auto* bytes = const_cast<int8_t*>(packed->b);
  for (int64_t at = 0; at < columns; ++at) {
    const int64_t first = at / isa.width * isa.width, i = at - first;
    const int64_t n = first + isa.Channel(isa.width, static_cast<int>(i));
    if (n >= w.n) continue;
    for (int64_t t = 0; t < w.tap_count; ++t) {
      const int64_t to = first * taps + ((t / isa.group) * isa.width + i) * isa.group + t % isa.group;
      const int8_t v = w.data[t * w.k_stride + n * w.n_stride];
      if (isa.weight_bytes == 2) reinterpret_cast<int16_t*>(bytes)[to] = v;
      else bytes[to] = v;
    }
    if (Status s = PackChannel(ctx, w, n, isa.form_offset, x, y, const_cast<int32_t*>(packed->bias) + at,
                               const_cast<float*>(packed->scale) + at, &packed->epilogue.clamp);
        s != Status::kOk)
      return s;
  }
  return Status::kOk;
}

Status ReadConstants(Prepare& ctx, int i, int axis, int64_t n, ConstantsS8* c) {
  const Tensor& w = ctx.in(i);
  if (w.dtype != DType::kI8) return ctx.Fail("weights: got %s, expected i8 like the input", NameOf(w.dtype));
  if (!w.constant) return ctx.Fail("int8 weights must be constant");
  const Quant& q = w.quant;
  if (q.count != 1 && q.count != w.dims[axis])
    return ctx.Fail("scales of the weights: got %d, expected 1 or %lld", q.count, static_cast<long long>(w.dims[axis]));
  if (q.count > 1 && q.axis != axis) return ctx.Fail("scales of the weights: got axis %d, expected %d", q.axis, axis);
  if (q.zero_point != 0) return ctx.Fail("zero point of the weights: got %d, expected 0", q.zero_point);
  *c = {w.as<int8_t>(), q.scale, q.count, nullptr};
  if (!ctx.Has(i + 1)) return Status::kOk;
  const Tensor& b = ctx.in(i + 1);
  if (b.dtype != DType::kI32 || b.rank != 1 || b.dims[0] != n || !b.constant)
    return ctx.Fail("bias: got %s of %lld values, expected a constant i32 of %lld", NameOf(b.dtype),
                    static_cast<long long>(b.size()), static_cast<long long>(n));
  c->bias = b.as<int32_t>();
  return Status::kOk;
}

Status PlanStrip(Prepare& ctx, StripS8* s) {
  constexpr int64_t kMost = int64_t{1} << 40;
  s->width = (s->cols.output - 1) * s->cols.stride + s->cols.reach();  // below 2^62: each factor is below 2^31
  s->pixel_bytes = s->channels * s->copies * s->form_bytes;
  int64_t least_bytes = 0;
  if (s->width > kMost || __builtin_mul_overflow(s->width, s->pixel_bytes, &s->row_bytes) ||
      __builtin_mul_overflow(s->row_bytes, s->rows.reach(), &least_bytes) || least_bytes > kMost)
    return ctx.Fail("the padded image is too large");
  const int64_t fixed = s->rows.reach() - s->rows.stride;  // input rows beyond those that each output row adds
  int64_t step = (kBlockBytes / (s->row_bytes > 0 ? s->row_bytes : 1) - fixed) / s->rows.stride;
  const int64_t least = 48 / s->cols.output + 1;  // enough pixels to make use of a panel of weights
  step = step < least ? least : step;
  s->step = step > s->rows.output ? s->rows.output : step;
  s->pointer_bytes = RoundUp(s->step * s->cols.output * static_cast<int64_t>(sizeof(uint8_t*)), 64);
  int64_t strip_bytes = 0;
  if (__builtin_mul_overflow((s->step - 1) * s->rows.stride + s->rows.reach(), s->row_bytes, &strip_bytes) ||
      strip_bytes > kMost)
    return ctx.Fail("the padded image is too large");
  s->bytes = s->pointer_bytes + RoundUp(strip_bytes + 64, 64);  // inner loops may read 64 bytes beyond the last value
  return Status::kOk;
}

namespace {

void FillPadding(const StripS8& s, uint8_t* to, int64_t bytes) {
  if (s.form_bytes == 1) {
    std::memset(to, s.padding, static_cast<size_t>(bytes));
  } else {
    for (int64_t i = 0; i < bytes / 2; ++i) reinterpret_cast<int16_t*>(to)[i] = static_cast<int16_t>(s.padding);
  }
}

void CopyPixels(const StripS8& s, uint8_t* to, const int8_t* from, int64_t pixels) {
  const int64_t n = pixels * s.channels;
  if (s.copies > 1) {  // one byte a value in every depthwise form
    for (int64_t i = 0; i < n; ++i) {
      uint8_t v = static_cast<uint8_t>(from[i]);
      if (s.form) s.form(&v, from + i, 1);
      for (int64_t c = 0; c < s.copies; ++c) *to++ = v;
    }
  } else if (s.form) {
    s.form(to, from, n);
  } else {
    std::memcpy(to, from, static_cast<size_t>(n));
  }
}

}  // namespace

const uint8_t* const* StripS8::Fill(const int8_t* image, int64_t begin, int64_t end, void* buffer) const {
  auto* pointers = static_cast<const uint8_t**>(buffer);
  uint8_t* strip = static_cast<uint8_t*>(buffer) + pointer_bytes;
  const int64_t first = begin * rows.stride - rows.before;
  const int64_t count = (end - begin - 1) * rows.stride + rows.reach();
  const int64_t left = cols.before < width ? cols.before : width;
  int64_t copied = width - left < cols.input ? width - left : cols.input;
  for (int64_t r = 0; r < count; ++r) {
    uint8_t* to = strip + r * row_bytes;
    const int64_t y = first + r;
    if (y < 0 || y >= rows.input) {
      FillPadding(*this, to, row_bytes);
      continue;
    }
    FillPadding(*this, to, left * pixel_bytes);
    CopyPixels(*this, to + left * pixel_bytes, image + y * cols.input * channels, copied);
    FillPadding(*this, to + (left + copied) * pixel_bytes, (width - left - copied) * pixel_bytes);
  }
  for (int64_t y = 0; y < end - begin; ++y)
    for (int64_t x = 0; x < cols.output; ++x)
      pointers[y * cols.output + x] = strip + y * rows.stride * row_bytes + x * cols.stride * pixel_bytes;
  return pointers;
}

namespace {

int64_t RowsOfBlock(const GemmS8& isa, const PackedS8& packed) {
  const int64_t rows = kBlockBytes / (packed.depth * isa.form_bytes + 1);
  return rows < 12 ? 12 : rows > 384 ? 384 : rows / 12 * 12;
}

}  // namespace

int64_t WorkspaceOfRows(const GemmS8& isa, const PackedS8& packed) {
  const int64_t rows = RowsOfBlock(isa, packed);
  const int64_t form = isa.Form ? RoundUp(rows * packed.depth * isa.form_bytes + 64, 64) : 0;
  return RoundUp(rows * static_cast<int64_t>(sizeof(uint8_t*)), 64) + form;
}

void RunRows(const Run& ctx, const GemmS8& isa, const PackedS8& packed, const int8_t* a, int64_t m, int8_t* out) {
  const int64_t block = RowsOfBlock(isa, packed), bytes = WorkspaceOfRows(isa, packed);
  const int64_t pointers = RoundUp(block * static_cast<int64_t>(sizeof(uint8_t*)), 64), no_offset = 0;
  auto run = [&](int64_t begin, int64_t end, int64_t panel_begin, int64_t panel_end, int thread) {
    auto* rows = reinterpret_cast<const uint8_t**>(static_cast<uint8_t*>(ctx.workspace) + thread * bytes);
    uint8_t* form = reinterpret_cast<uint8_t*>(rows) + pointers;
    for (int64_t at = begin; at < end; at += block) {
      const int64_t count = end - at < block ? end - at : block;
      const auto* first = reinterpret_cast<const uint8_t*>(a + at * packed.depth);
      if (isa.Form) isa.Form(form, a + at * packed.depth, count * packed.depth);
      for (int64_t i = 0; i < count; ++i)
        rows[i] = (isa.Form ? form : first) + i * packed.depth * (isa.Form ? isa.form_bytes : 1);
      isa.Run({rows, count, &no_offset, 1, packed.depth, packed.b, packed.bias, packed.scale, packed.n, panel_begin,
               panel_end, packed.epilogue, out + at * packed.n, packed.n});
    }
  };
  if (m >= 8 * ctx.pool->threads())
    ctx.ParallelFor(m, 24, [&](int64_t b, int64_t e, int t) { run(b, e, 0, packed.panels, t); });
  else ctx.ParallelFor(packed.panels, 4, [&](int64_t b, int64_t e, int t) { run(0, m, b, e, t); });
}

}  // namespace rillet
