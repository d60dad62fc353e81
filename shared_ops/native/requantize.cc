#include "requantize.h"

#include <cmath>

namespace rillet {
namespace {

constexpr double kLn2High = 0.6931471803691238, kLn2Low = 1.9082149292705877e-10;

double Exp64(double x) {  // x <= 0
  if (x < -708.0) return 0.0;
  double inverse_factorial[14] = {1.0}, factorial = 1.0;
  for (int i = 1; i < 14; ++i) {
    factorial *= i;  // 13! < 2^53: exact
    inverse_factorial[i] = 1.0 / factorial;
  }
  const double n = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double p = inverse_factorial[13];
  for (int i = 12; i >= 0; --i) p = p * r + inverse_factorial[i];
  return std::ldexp(p, static_cast<int>(n));
}

}  // namespace

void ExpTable(float scale, float table[256]) {
  for (int k = 0; k < 256; ++k) table[k] = static_cast<float>(Exp64(-(k * static_cast<double>(scale))));
}

double Log64(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.7071067811865476) {
    m *= 2.0;
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 23.0;
  for (int k = 21; k > 0; k -= 2) p = p * z + 1.0 / k;
  return exponent * kLn2High + (2.0 * s * p + exponent * kLn2Low);
}

Status ReadQuant(Prepare& ctx, const Tensor& t, const char* what, TensorQuant* quant) {
  const Quant& q = t.quant;
  if (t.dtype != DType::kI8) return ctx.Fail("%s: got %s, expected i8", what, NameOf(t.dtype));
  if (q.count != 1) return ctx.Fail("scales of %s: got %d, expected 1 (it is int8)", what, q.count);
  if (!(q.scale[0] > 0) || !std::isfinite(q.scale[0]))
    return ctx.Fail("scale of %s: got %g, expected a positive number", what, static_cast<double>(q.scale[0]));
  if (q.zero_point < kQMin || q.zero_point > kQMax)
    return ctx.Fail("zero point of %s: got %d, expected -128 to 127", what, q.zero_point);
  *quant = {q.scale[0], q.zero_point};
  return Status::kOk;
}

Status ReadOutput(Prepare& ctx, const Tensor& y, bool has_activation, OutputQuant* out) {
  TensorQuant q;
  if (Status s = ReadQuant(ctx, y, "output 0", &q); s != Status::kOk) return s;
  *out = {q.scale, q.zero_point, kQMin, kQMax};
  if (!has_activation) return Status::kOk;
  const std::string_view name = ctx.String("activation");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (name == "NONE") return Status::kOk;
  out->low = q.zero_point;
  if (name == "RELU") return Status::kOk;
  if (name != "RELU6")
    return ctx.Fail("activation: got '%.*s', expected NONE, RELU or RELU6", static_cast<int>(name.size()), name.data());
  const double six = std::floor(static_cast<double>(6.0f / q.scale) + 0.5);
  if (six < static_cast<double>(kQMax - q.zero_point)) out->high = q.zero_point + static_cast<int32_t>(six);
  return Status::kOk;
}

Status CheckSameQuant(Prepare& ctx, const Tensor& a, const Tensor& b, const char* what) {
  TensorQuant p, q;
  if (Status s = ReadQuant(ctx, a, "input 0", &p); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, b, what, &q); s != Status::kOk) return s;
  if (p.scale == q.scale && p.zero_point == q.zero_point) return Status::kOk;
  return ctx.Fail(
      "%s has other int8 parameters than input 0: got scale %g, zero point %d, expected scale %g, zero point %d", what,
      static_cast<double>(q.scale), q.zero_point, static_cast<double>(p.scale), p.zero_point);
}

}  // namespace rillet
