// A copy between two strided views: what nearly every op that only moves data comes down to. Transpose, Slice, Tile,
// Concat, Pad and the others say in `prepare` which view of the input goes to which view of the output; the plan then
// merges dimensions, finds contiguous runs, and knows transposes.
#pragma once
#include "kernel.h"

namespace rillet {

// Strides and offsets in bytes. Dimensions from the outermost; those of the destination need no order.
class StridedCopy {
 public:
  static constexpr int kMaxDims = 2 * kMaxRank;

  StridedCopy() = default;
  explicit StridedCopy(size_t element_bytes) : element_(static_cast<int64_t>(element_bytes)) {}

  void AddDim(int64_t size, int64_t src_stride, int64_t dst_stride);
  // Merges and orders the dimensions; the last call before Run. `src_offset`, `dst_offset`: where the views begin.
  void Finish(int64_t src_offset = 0, int64_t dst_offset = 0);
  // Copies. The views must lie within src and dst, and no two elements of the destination may be one.
  void Run(const Run& run, const void* src, void* dst) const;

  bool empty() const { return empty_; }

 private:
  enum class Kind { kRuns, kElements, kTranspose };
  struct Dim {
    int64_t size, src, dst;
  };
  struct Cursor;

  void Merge();
  void Widen();
  void FindTranspose();
  void RunUnits(int64_t begin, int64_t end, const char* src, char* dst) const;

  int64_t element_ = 1;  // bytes that move as one; may grow past the tensor's element
  int64_t src_offset_ = 0, dst_offset_ = 0;
  int64_t outer_ = 1;               // product of the dimensions before the inner ones
  int64_t chunks_ = 1, chunk_ = 1;  // the inner loop is cut into chunks, so that few large rows use all threads
  Dim dims_[kMaxDims] = {};
  int32_t rank_ = 0;
  int32_t inner_ = 0;  // how many of the last dimensions the inner loop takes
  Kind kind_ = Kind::kRuns;
  bool empty_ = false;
};

// The bytes from one element to the next along each dimension of a dense tensor.
struct Strides {
  int64_t of[kMaxRank] = {};
  explicit Strides(const Tensor& t) : Strides(t.rank, t.dims, SizeOf(t.dtype)) {}
  Strides(int rank, const int64_t* dims, size_t element) {
    int64_t s = static_cast<int64_t>(element);
    for (int i = rank - 1; i >= 0; --i) {
      of[i] = s;
      s *= dims[i];
    }
  }
  int64_t operator[](int i) const { return of[i]; }
};

// Copies `bytes` bytes with all threads.
void CopyBytes(const Run& run, void* dst, const void* src, int64_t bytes);
// Writes n copies of the element at `value`.
void FillElements(const Run& run, void* dst, int64_t n, size_t element, const void* value);

// `axis` counted from the front, or -1 (and an error in p) where it is out of [-rank, rank).
int NormalizeAxis(Prepare& p, int64_t axis, int rank);
// The whole numbers in a shape input, an int32 or int64 vector that must be constant. Returns how many, or -1 and an
// error.
int ReadShape(Prepare& p, int input, int64_t* dims);
// `value` as an element of `dtype` (quantized where `quant` has parameters), in the first bytes of the result.
struct Element {
  alignas(8) char bytes[8] = {};
};
Element MakeElement(DType dtype, const Quant& quant, double value);

}  // namespace rillet
