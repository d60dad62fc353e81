#include "conv_geometry.h"

#include <algorithm>
#include <limits>

namespace rillet {
namespace {

constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();  // of attributes: sums and products below fit 64 bits

Status ReadPair(Prepare& ctx, const char* name, int64_t pair[2]) {
  const Span<int64_t> given = ctx.Ints(name);
  if (ctx.status() != Status::kOk) return ctx.status();
  if (given.size != 2) return ctx.Fail("%s: got %lld numbers, expected 2", name, static_cast<long long>(given.size));
  for (int i = 0; i < 2; ++i) {
    if (given[i] < 1 || given[i] > kLimit)
      return ctx.Fail("%s must be positive: got %lld, expected at least 1", name, static_cast<long long>(given[i]));
    pair[i] = given[i];
  }
  return Status::kOk;
}

Status ReadPads(Prepare& ctx, WindowAttrs* attrs) {
  const Span<int64_t> pads = ctx.Ints("pads");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (pads.size != 4) return ctx.Fail("pads: got %lld numbers, expected 4", static_cast<long long>(pads.size));
  for (int i = 0; i < 4; ++i) {
    if (pads[i] < 0 || pads[i] > kLimit)
      return ctx.Fail("pads must not be negative: got %lld, expected at least 0", static_cast<long long>(pads[i]));
    if (attrs->padding != Padding::kExplicit && pads[i] != 0) return ctx.Fail("pads need padding EXPLICIT");
    attrs->pads[i / 2][i % 2] = pads[i];
  }
  return Status::kOk;
}

}  // namespace

Status ReadWindowAttrs(Prepare& ctx, WindowAttrs* attrs, bool has_dilations, bool has_pads) {
  if (Status s = ReadPair(ctx, "strides", attrs->stride); s != Status::kOk) return s;
  if (has_dilations) {
    if (Status s = ReadPair(ctx, "dilations", attrs->dilation); s != Status::kOk) return s;
  }
  const std::string_view padding = ctx.String("padding");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (padding == "SAME") {
    attrs->padding = Padding::kSame;
  } else if (padding == "VALID") {
    attrs->padding = Padding::kValid;
  } else if (padding == "EXPLICIT" && has_pads) {
    attrs->padding = Padding::kExplicit;
  } else {
    return ctx.Fail("padding: got '%.*s', expected SAME, VALID%s", static_cast<int>(padding.size()), padding.data(),
                    has_pads ? " or EXPLICIT" : "");
  }
  return has_pads ? ReadPads(ctx, attrs) : Status::kOk;
}

Status ResolveWindow(Prepare& ctx, const WindowAttrs& attrs, int axis, int64_t input, int64_t kernel, WindowAxis* out) {
  const char* name = axis == 0 ? "rows" : "columns";
  if (kernel < 1)
    return ctx.Fail("the window has no %s: got %lld, expected at least 1", name, static_cast<long long>(kernel));
  if (kernel > kLimit || input > kLimit)
    return ctx.Fail("%s: got %lld, expected at most %lld", name,
                    static_cast<long long>(kernel > input ? kernel : input), static_cast<long long>(kLimit));
  WindowAxis w;
  w.input = input;
  w.kernel = kernel;
  w.stride = attrs.stride[axis];
  w.dilation = attrs.dilation[axis];
  if (attrs.padding == Padding::kSame) {
    w.output = (input + w.stride - 1) / w.stride;
    const int64_t missing = (w.output - 1) * w.stride + w.reach() - input;
    const int64_t total = missing > 0 ? missing : 0;
    w.before = total / 2;
    w.after = total - w.before;
  } else {
    w.before = attrs.pads[axis][0];
    w.after = attrs.pads[axis][1];
    const int64_t padded = input + w.before + w.after;
    if (w.reach() > padded)
      return ctx.Fail("the window reaches beyond the padded image's %s: got %lld, expected at most %lld", name,
                      static_cast<long long>(w.reach()), static_cast<long long>(padded));
    w.output = (padded - w.reach()) / w.stride + 1;
  }
  // A step over the whole image is never taken where it would not fit: a larger one only makes products overflow.
  w.stride = std::min(w.stride, std::max<int64_t>(1, w.padded()));
  *out = w;
  return Status::kOk;
}

Status CheckPaddedSize(Prepare& ctx, int64_t images, int64_t rows, int64_t columns, int64_t channels) {
  int64_t size = 1;
  for (int64_t n : {images, rows, columns, channels})
    if (n < 0 || (n > 0 && (__builtin_mul_overflow(size, n, &size) || size > kMaxBytes)))
      return ctx.Fail("the padded image is too large: got %lld by %lld by %lld by %lld", static_cast<long long>(images),
                      static_cast<long long>(rows), static_cast<long long>(columns), static_cast<long long>(channels));
  return Status::kOk;
}

Status ReadActivation(Prepare& ctx, ActivationBounds* bounds) {
  const std::string_view name = ctx.String("activation");
  if (ctx.status() != Status::kOk) return ctx.status();
  *bounds = {};
  if (name == "NONE") return Status::kOk;
  if (name == "RELU" || name == "RELU6") {
    bounds->clamp = true;
    bounds->low = 0.0f;
    bounds->high = name == "RELU" ? std::numeric_limits<float>::infinity() : 6.0f;
    return Status::kOk;
  }
  return ctx.Fail("activation: got '%.*s', expected NONE, RELU or RELU6", static_cast<int>(name.size()), name.data());
}

}  // namespace rillet
