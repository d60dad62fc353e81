// Which elements a reduction puts together: the input's axes, neighbours merged, as kept and reduced ones.
#pragma once
#include "kernel.h"

namespace rillet {

struct ReducePlan {
  enum class Layout : uint8_t {
    kRows,       // [kept, reduced]: every result from one contiguous run
    kColumns,    // [kept, reduced, columns]: `columns` results side by side
    kScattered,  // anything else: gather what belongs to a result first
  };
  Layout layout = Layout::kRows;
  int64_t outputs = 1;        // elements of the result
  int64_t count = 1;          // elements that each is made of
  int64_t columns = 1;        // kColumns: kept elements behind the reduced axis
  int kept = 0, reduced = 0;  // merged axes of each kind
  int64_t kept_dims[kMaxRank] = {}, kept_strides[kMaxRank] = {};
  int64_t reduced_dims[kMaxRank] = {}, reduced_strides[kMaxRank] = {};

  // Where the elements of result `o` start.
  int64_t Start(int64_t o) const {
    int64_t at = 0;
    for (int i = kept - 1; i >= 0; --i) {
      at += o % kept_dims[i] * kept_strides[i];
      o /= kept_dims[i];
    }
    return at;
  }

  // Calls body(offset from Start) for each element of a result, in row-major order over the reduced axes.
  template <class Body>
  void ForEach(const Body& body) const {
    int64_t index[kMaxRank] = {};
    for (int64_t i = 0, at = 0; i < count; ++i) {
      body(at);
      for (int a = reduced - 1; a >= 0; --a) {
        at += reduced_strides[a];
        if (++index[a] < reduced_dims[a]) break;
        at -= reduced_dims[a] * reduced_strides[a];
        index[a] = 0;
      }
    }
  }

  // The same, from the last element to the first.
  template <class Body>
  void ForEachBackwards(const Body& body) const {
    for (int64_t i = count - 1; i >= 0; --i) {
      int64_t at = 0, rest = i;
      for (int a = reduced - 1; a >= 0; --a) {
        at += rest % reduced_dims[a] * reduced_strides[a];
        rest /= reduced_dims[a];
      }
      body(at);
    }
  }
};

// The plan to reduce the axes of `x` that are set in `mask`.
void PlanReduction(const Tensor& x, const bool* mask, ReducePlan* plan);
// Reads `axes` of a reduction of input 0: sets mask where an axis is reduced.
Status ReadReducedAxes(Prepare& ctx, bool* mask);
// Reads `axes` and `keepdims`, sets output `out` (of `dtype`), and plans.
Status PrepareReduction(Prepare& ctx, int out, DType dtype, ReducePlan* plan);

}  // namespace rillet
