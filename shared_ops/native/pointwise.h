// The float loops of the pointwise ops, one table for each instruction set, and how their entries are numbered.
// Included by code compiled for each instruction set: plain types only.
#pragma once
#include <cstdint>

namespace rillet {

// y[i] = f(x[i]); y may be x. params: the numbers that the op's attributes give.
using UnaryLoop = void (*)(const float* x, float* y, int64_t n, const float* params);
// y[i] = f(a[i], b[i]) with either operand one number for the whole loop, or not: `Operands` says which. y may be a or
// b.
using BinaryLoop = void (*)(const float* a, const float* b, float* y, int64_t n, const float* params);
enum Operands : int { kBothVary = 0, kRightFixed = 1, kLeftFixed = 2, kOperandForms = 3 };

enum class Unary : int {
#define RILLET_UNARY_F32(op, stem, ...) k##op,
#include "pointwise.inc"
  kCount
};

enum class Binary : int {
  kAddClamped,
  kMulClamped,
#define RILLET_BINARY_F32(op, stem) k##op,
#define RILLET_GRAD_F32(op, stem) k##op,
#include "pointwise.inc"
  kCount
};

struct PointwiseLoops {
  UnaryLoop unary[static_cast<int>(Unary::kCount)];
  BinaryLoop binary[static_cast<int>(Binary::kCount)][kOperandForms];
};

namespace scalar {
extern const PointwiseLoops kPointwise;
}
namespace avx2 {
extern const PointwiseLoops kPointwise;
}
namespace avx512 {
extern const PointwiseLoops kPointwise;
}
namespace neon {
extern const PointwiseLoops kPointwise;
}

// Those of the instruction set that kernels prepared now use.
const PointwiseLoops& CurrentPointwiseLoops();

}  // namespace rillet
