// Runs every float loop of one instruction set over bit patterns spread over all floats, and prints a hash of the
// results: equal output is equal bytes. NaNs count as one value: their payload is not promised. Compiled by
// test_vmath.py.
#include <cstdio>
#include <cstring>
#include <vector>

// Included with RILLET_ISA defined, as the loops are.
#include "pointwise.h"

namespace {

uint64_t Hash(const std::vector<float>& values, size_t count) {
  uint64_t h = 14695981039346656037ull;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], 4);
    if (values[i] != values[i]) bits = 0x7fc00000;
    h = (h ^ bits) * 1099511628211ull;
  }
  return h;
}

std::vector<float> Spread(uint64_t stride) {
  std::vector<float> values;
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += stride) {
    const auto bits = static_cast<uint32_t>(u);
    float x;
    std::memcpy(&x, &bits, 4);
    values.push_back(x);
  }
  return values;
}

}  // namespace

int main() {
  const auto& loops = rillet::RILLET_ISA::kPointwise;
  const float params[2] = {-0.75f, 2.5f};
  // The second operand walks the floats in another order, near one for the first half so that powers stay finite.
  const std::vector<float> x = Spread(40009);
  std::vector<float> z(x.size()), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    z[i] = i % 2 ? x[(i * 7919) % x.size()] : static_cast<float>(i % 97) * 0.25f - 12;
  const auto n = static_cast<int64_t>(x.size());
  int number = 0;
  for (rillet::UnaryLoop loop : loops.unary) {
    loop(x.data(), y.data(), n, params);
    std::printf("unary %d %016llx\n", number++, static_cast<unsigned long long>(Hash(y, y.size())));
  }
  number = 0;
  for (const auto& forms : loops.binary) {
    for (int form = 0; form < rillet::kOperandForms; ++form) {
      forms[form](x.data() + 100, z.data() + 100, y.data(), n - 100, params);
      std::printf("binary %d.%d %016llx\n", number, form, static_cast<unsigned long long>(Hash(y, y.size() - 100)));
    }
    ++number;
  }
}
