// The loops over the functions of pointwise_functions.h, and the table of them for one instruction set.
#pragma once
#include "../pointwise.h"
#include "pointwise_functions.h"

namespace rillet {
namespace RILLET_ISA {
namespace {

using UnaryFunction = F (*)(F, const float*);
using BinaryFunction = F (*)(F, F, const float*);

// Four vectors a turn: independent chains hide the latency of long functions. What is left over at the end goes through
// a turn of its own in padded memory, so that each function is compiled in once.
constexpr int kTurn = 4;
constexpr int64_t kBlock = kTurn * kLanes;

template <UnaryFunction f>
void MapUnary(const float* x, float* y, int64_t n, const float* params) {
  float padded[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const size_t left = static_cast<size_t>(n - i) * sizeof(float);
    const bool partial = left < sizeof(padded);
    const float* from = x + i;
    float* to = y + i;
    if (partial) {
      for (int j = 0; j < kTurn; ++j) Store(padded + j * kLanes, Set(0.0f));
      std::memcpy(padded, from, left);
      from = to = padded;
    }
    F r[kTurn];
#pragma GCC unroll 4
    for (int j = 0; j < kTurn; ++j) r[j] = f(Load(from + j * kLanes), params);
#pragma GCC unroll 4
    for (int j = 0; j < kTurn; ++j) Store(to + j * kLanes, r[j]);
    if (partial) std::memcpy(y + i, padded, left);
  }
}

template <BinaryFunction f, Operands form>
void MapBinary(const float* a, const float* b, float* y, int64_t n, const float* params) {
  const F left_fixed = Set(form == kLeftFixed ? *a : 0.0f), right_fixed = Set(form == kRightFixed ? *b : 0.0f);
  float padded[2][kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const size_t left = static_cast<size_t>(n - i) * sizeof(float);
    const bool partial = left < sizeof(padded[0]);
    const float* from[2] = {form == kLeftFixed ? a : a + i, form == kRightFixed ? b : b + i};
    float* to = y + i;
    if (partial) {
      for (int j = 0; j < 2 * kTurn; ++j) Store(padded[0] + j * kLanes, Set(0.0f));
      if (form != kLeftFixed) std::memcpy(padded[0], from[0], left);
      if (form != kRightFixed) std::memcpy(padded[1], from[1], left);
      from[0] = to = padded[0];
      from[1] = padded[1];
    }
    F r[kTurn];
#pragma GCC unroll 4
    for (int j = 0; j < kTurn; ++j)
      r[j] = f(form == kLeftFixed ? left_fixed : Load(from[0] + j * kLanes),
               form == kRightFixed ? right_fixed : Load(from[1] + j * kLanes), params);
#pragma GCC unroll 4
    for (int j = 0; j < kTurn; ++j) Store(to + j * kLanes, r[j]);
    if (partial) std::memcpy(y + i, padded[0], left);
  }
}

}  // namespace

#define RILLET_FORMS(f) {MapBinary<f, kBothVary>, MapBinary<f, kRightFixed>, MapBinary<f, kLeftFixed>},
const PointwiseLoops kPointwise = {{
#define RILLET_UNARY_F32(op, stem, ...) MapUnary<pointwise::stem>,
#include "../pointwise.inc"
                                   },
                                   {RILLET_FORMS(pointwise::add_clamped) RILLET_FORMS(pointwise::mul_clamped)
#define RILLET_BINARY_F32(op, stem) RILLET_FORMS(pointwise::stem)
#define RILLET_GRAD_F32(op, stem) RILLET_FORMS(pointwise::stem)
#include "../pointwise.inc"
                                   }};
#undef RILLET_FORMS

}  // namespace RILLET_ISA
}  // namespace rillet
