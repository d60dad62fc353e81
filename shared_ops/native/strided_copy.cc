// Plans and runs strided copies (strided_copy.h).
#include "strided_copy.h"

#include <cmath>

namespace rillet {
namespace {

constexpr int64_t kGrainBytes = 32 << 10;  // below this a thread is not worth waking
constexpr int64_t kTile = 32;              // a tile of a transpose: rows and columns

template <int kBytes>
void CopyElements(int64_t n, const char* src, int64_t src_stride, char* dst, int64_t dst_stride) {
  if (src_stride == 0 && dst_stride == kBytes) {
    char value[kBytes];
    memcpy(value, src, kBytes);
    for (int64_t i = 0; i < n; ++i) memcpy(dst + i * kBytes, value, kBytes);
    return;
  }
  if (dst_stride == kBytes) {
    for (int64_t i = 0; i < n; ++i) memcpy(dst + i * kBytes, src + i * src_stride, kBytes);
    return;
  }
  for (int64_t i = 0; i < n; ++i) memcpy(dst + i * dst_stride, src + i * src_stride, kBytes);
}

void CopyStrided(int64_t element, int64_t n, const char* src, int64_t src_stride, char* dst, int64_t dst_stride) {
  switch (element) {
    case 1: return CopyElements<1>(n, src, src_stride, dst, dst_stride);
    case 2: return CopyElements<2>(n, src, src_stride, dst, dst_stride);
    case 4: return CopyElements<4>(n, src, src_stride, dst, dst_stride);
    case 8: return CopyElements<8>(n, src, src_stride, dst, dst_stride);
    case 16: return CopyElements<16>(n, src, src_stride, dst, dst_stride);
    default:
      for (int64_t i = 0; i < n; ++i) memcpy(dst + i * dst_stride, src + i * src_stride, static_cast<size_t>(element));
  }
}

// One tile: source rows lie `src_stride` apart and become columns of the destination, whose rows lie `dst_stride`
// apart.
template <int kBytes>
void TransposeTile(int64_t rows, int64_t columns, const char* src, int64_t src_stride, char* dst, int64_t dst_stride) {
  for (int64_t c = 0; c < columns; ++c) {
    char* to = dst + c * dst_stride;
    const char* from = src + c * kBytes;
    for (int64_t r = 0; r < rows; ++r) memcpy(to + r * kBytes, from + r * src_stride, kBytes);
  }
}

typedef int32_t Int4 __attribute__((vector_size(16)));

#if defined(__clang__)
#define RILLET_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define RILLET_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, Int4{i, j, k, l})
#endif

// Four by four 32-bit elements in registers.
inline void Transpose4x4(const char* src, int64_t src_stride, char* dst, int64_t dst_stride) {
  Int4 a, b, c, d;
  memcpy(&a, src, 16);
  memcpy(&b, src + src_stride, 16);
  memcpy(&c, src + 2 * src_stride, 16);
  memcpy(&d, src + 3 * src_stride, 16);
  const Int4 ab_low = RILLET_SHUFFLE(a, b, 0, 4, 1, 5), ab_high = RILLET_SHUFFLE(a, b, 2, 6, 3, 7);
  const Int4 cd_low = RILLET_SHUFFLE(c, d, 0, 4, 1, 5), cd_high = RILLET_SHUFFLE(c, d, 2, 6, 3, 7);
  a = RILLET_SHUFFLE(ab_low, cd_low, 0, 1, 4, 5);
  b = RILLET_SHUFFLE(ab_low, cd_low, 2, 3, 6, 7);
  c = RILLET_SHUFFLE(ab_high, cd_high, 0, 1, 4, 5);
  d = RILLET_SHUFFLE(ab_high, cd_high, 2, 3, 6, 7);
  memcpy(dst, &a, 16);
  memcpy(dst + dst_stride, &b, 16);
  memcpy(dst + 2 * dst_stride, &c, 16);
  memcpy(dst + 3 * dst_stride, &d, 16);
}

template <>
void TransposeTile<4>(int64_t rows, int64_t columns, const char* src, int64_t src_stride, char* dst,
                      int64_t dst_stride) {
  const int64_t rows4 = rows & ~int64_t{3}, columns4 = columns & ~int64_t{3};
  for (int64_t r = 0; r < rows4; r += 4)
    for (int64_t c = 0; c < columns4; c += 4)
      Transpose4x4(src + r * src_stride + c * 4, src_stride, dst + c * dst_stride + r * 4, dst_stride);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = c < columns4 ? rows4 : 0; r < rows; ++r)
      memcpy(dst + c * dst_stride + r * 4, src + r * src_stride + c * 4, 4);
}

void TransposeBlock(int64_t element, int64_t rows, int64_t columns, const char* src, int64_t src_stride, char* dst,
                    int64_t dst_stride) {
  for (int64_t r = 0; r < rows; r += kTile) {
    const int64_t n = rows - r < kTile ? rows - r : kTile;
    const char* from = src + r * src_stride;
    char* to = dst + r * element;
    switch (element) {
      case 1: TransposeTile<1>(n, columns, from, src_stride, to, dst_stride); break;
      case 2: TransposeTile<2>(n, columns, from, src_stride, to, dst_stride); break;
      case 4: TransposeTile<4>(n, columns, from, src_stride, to, dst_stride); break;
      case 8: TransposeTile<8>(n, columns, from, src_stride, to, dst_stride); break;
      default: TransposeTile<16>(n, columns, from, src_stride, to, dst_stride); break;
    }
  }
}

// Saturating: a file may hold any number.
int64_t ToInt64(double value) {
  if (!(value > -9.2e18)) return value == value ? INT64_MIN : 0;
  return value < 9.2e18 ? static_cast<int64_t>(value) : INT64_MAX;
}

bool IsMachineSize(int64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16; }

}  // namespace

void StridedCopy::AddDim(int64_t size, int64_t src_stride, int64_t dst_stride) {
  if (size == 0) empty_ = true;
  if (size != 1 && rank_ < kMaxDims) dims_[rank_++] = {size, src_stride, dst_stride};
}

void StridedCopy::Merge() {
  int n = 0;
  for (int i = 0; i < rank_; ++i) {
    if (n > 0) {
      Dim& last = dims_[n - 1];
      if (last.src == dims_[i].size * dims_[i].src && last.dst == dims_[i].size * dims_[i].dst) {
        last = {last.size * dims_[i].size, dims_[i].src, dims_[i].dst};
        continue;
      }
    }
    dims_[n++] = dims_[i];
  }
  rank_ = n;
}

// A contiguous innermost run becomes one larger element.
void StridedCopy::Widen() {
  if (rank_ > 0 && dims_[rank_ - 1].src == element_ && dims_[rank_ - 1].dst == element_) {
    element_ *= dims_[rank_ - 1].size;
    --rank_;
  }
}

// Where the source is contiguous along another dimension than the destination, the two become the innermost ones.
void StridedCopy::FindTranspose() {
  if (rank_ < 2 || dims_[rank_ - 1].dst != element_ || dims_[rank_ - 1].src == 0) return;
  for (int i = rank_ - 2; i >= 0; --i) {
    if (dims_[i].src != element_) continue;
    const Dim columns = dims_[i];
    for (int j = i; j < rank_ - 2; ++j) dims_[j] = dims_[j + 1];
    dims_[rank_ - 2] = columns;
    kind_ = Kind::kTranspose;
    return;
  }
}

void StridedCopy::Finish(int64_t src_offset, int64_t dst_offset) {
  src_offset_ = src_offset;
  dst_offset_ = dst_offset;
  Merge();
  Widen();
  kind_ = Kind::kRuns;
  inner_ = 0;
  int64_t inner_size = element_;  // of a run: cut by bytes
  if (rank_ > 0 && IsMachineSize(element_)) {
    kind_ = Kind::kElements;
    inner_ = 1;
    FindTranspose();
    if (kind_ == Kind::kTranspose) inner_ = 2;
    inner_size = dims_[rank_ - inner_].size;
  }
  outer_ = 1;
  for (int i = 0; i < rank_ - inner_; ++i) outer_ *= dims_[i].size;
  chunk_ = kind_ == Kind::kRuns ? kGrainBytes : kind_ == Kind::kElements ? kGrainBytes / element_ : kTile;
  chunks_ = inner_size > chunk_ ? (inner_size + chunk_ - 1) / chunk_ : 1;
  if (chunks_ == 1) chunk_ = inner_size;
}

// The place in the outer dimensions, counted on like an odometer.
struct StridedCopy::Cursor {
  const StridedCopy& plan;
  int dims;
  int64_t at[kMaxDims];
  int64_t src = 0, dst = 0;

  Cursor(const StridedCopy& p, int64_t position) : plan(p), dims(p.rank_ - p.inner_) {
    for (int i = dims - 1; i >= 0; --i) {
      at[i] = position % p.dims_[i].size;
      position /= p.dims_[i].size;
      src += at[i] * p.dims_[i].src;
      dst += at[i] * p.dims_[i].dst;
    }
  }
  void Next() {
    for (int i = dims - 1; i >= 0; --i) {
      const Dim& d = plan.dims_[i];
      src += d.src;
      dst += d.dst;
      if (++at[i] < d.size) return;
      src -= d.size * d.src;
      dst -= d.size * d.dst;
      at[i] = 0;
    }
  }
};

void StridedCopy::RunUnits(int64_t begin, int64_t end, const char* src, char* dst) const {
  Cursor cursor(*this, begin / chunks_);
  int64_t chunk = begin % chunks_;
  const Dim inner = inner_ ? dims_[rank_ - inner_] : Dim{element_, 1, 1};
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = chunk * chunk_;
    const int64_t n = inner.size - first < chunk_ ? inner.size - first : chunk_;
    const char* from = src + cursor.src + first * inner.src;
    char* to = dst + cursor.dst + first * inner.dst;
    if (kind_ == Kind::kRuns) {
      memcpy(to, from, static_cast<size_t>(n));
    } else if (kind_ == Kind::kElements) {
      CopyStrided(element_, n, from, inner.src, to, inner.dst);
    } else {
      const Dim& rows = dims_[rank_ - 1];
      TransposeBlock(element_, rows.size, n, from, rows.src, to, inner.dst);
    }
    if (++chunk == chunks_) {
      chunk = 0;
      cursor.Next();
    }
  }
}

void StridedCopy::Run(const rillet::Run& run, const void* src, void* dst) const {
  if (empty_) return;
  const char* from = static_cast<const char*>(src) + src_offset_;
  char* to = static_cast<char*>(dst) + dst_offset_;
  int64_t bytes = kind_ == Kind::kRuns ? chunk_ : chunk_ * element_;
  if (kind_ == Kind::kTranspose) bytes *= dims_[rank_ - 1].size;
  const int64_t grain = bytes >= kGrainBytes ? 1 : kGrainBytes / (bytes ? bytes : 1);
  run.ParallelFor(outer_ * chunks_, grain, [&](int64_t begin, int64_t end, int) { RunUnits(begin, end, from, to); });
}

void CopyBytes(const Run& run, void* dst, const void* src, int64_t bytes) {
  run.ParallelFor(bytes, 8 * kGrainBytes, [&](int64_t begin, int64_t end, int) {
    memcpy(static_cast<char*>(dst) + begin, static_cast<const char*>(src) + begin, static_cast<size_t>(end - begin));
  });
}

void FillElements(const Run& run, void* dst, int64_t n, size_t element, const void* value) {
  const int64_t bytes = static_cast<int64_t>(element);
  run.ParallelFor(n, kGrainBytes / bytes, [&](int64_t begin, int64_t end, int) {
    CopyStrided(bytes, end - begin, static_cast<const char*>(value), 0, static_cast<char*>(dst) + begin * bytes, bytes);
  });
}

int NormalizeAxis(Prepare& p, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    (void)p.Fail("axis out of range: got %lld, expected %d to %d", static_cast<long long>(axis), -rank, rank - 1);
    return -1;
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int ReadShape(Prepare& p, int input, int64_t* dims) {
  if (!p.Has(input)) return (void)p.Fail("input %d (shape) is missing", input), -1;
  const Tensor& t = p.in(input);
  if (t.rank != 1 || (t.dtype != DType::kI32 && t.dtype != DType::kI64))
    return (void)p.Fail("shape: got rank %d of %s, expected a vector of i32 or i64", t.rank, NameOf(t.dtype)), -1;
  if (!t.constant) return (void)p.Fail("the shape (input %d) must be known before the run", input), -1;
  if (t.dims[0] > kMaxRank)
    return (void)p.Fail("shape: got %lld dimensions, expected at most %d", static_cast<long long>(t.dims[0]), kMaxRank),
           -1;
  for (int i = 0; i < t.dims[0]; ++i) dims[i] = t.dtype == DType::kI32 ? t.as<int32_t>()[i] : t.as<int64_t>()[i];
  return static_cast<int>(t.dims[0]);
}

Element MakeElement(DType dtype, const Quant& quant, double value) {
  Element e;
  auto store = [&e](auto v) { memcpy(e.bytes, &v, sizeof(v)); };
  if (dtype == DType::kI8 && quant.count > 0) {  // quantize() of requantize.h: divide, round half to even, shift, clamp
    float q = std::nearbyint(static_cast<float>(value) / quant.scale[0]) + static_cast<float>(quant.zero_point);
    q = -128.0f > q ? -128.0f : q;
    q = 127.0f < q ? 127.0f : q;
    store(static_cast<int8_t>(q));
    return e;
  }
  switch (dtype) {
    case DType::kF32: store(static_cast<float>(value)); break;
    case DType::kF64: store(value); break;
    case DType::kI8: store(static_cast<int8_t>(ToInt64(value))); break;
    case DType::kU8: store(static_cast<uint8_t>(ToInt64(value))); break;
    case DType::kI32: store(static_cast<int32_t>(ToInt64(value))); break;
    case DType::kI64: store(ToInt64(value)); break;
    case DType::kBool: store(static_cast<uint8_t>(value != 0)); break;
  }
  return e;
}

}  // namespace rillet
