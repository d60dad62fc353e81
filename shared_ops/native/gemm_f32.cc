#include "gemm_f32.h"

#include <algorithm>

#include "isa/isa.h"

namespace rillet {
namespace {

const IsaTable<GemmFamily> kFamilies = {&scalar::kGemmF32, RILLET_AVX2(&avx2::kGemmF32),
                                        RILLET_AVX512(&avx512::kGemmF32), nullptr, RILLET_NEON(&neon::kGemmF32)};

constexpr int64_t kSmallB = 64 * 1024;  // floats of B that stay in the second-level cache

int64_t PanelColumns(const Gemm& g, int64_t panel) {
  const int64_t lanes = g.kernels->lanes, left = g.n - panel * g.columns();
  return left >= g.columns() ? g.columns() : (left + lanes - 1) / lanes * lanes;
}

// c += t, then the end of the product where this is the last chunk.
void AddChunk(const Gemm& g, bool end, float* c, const float* t, const float* bias, int64_t n) {
  const float low = g.bounds.low, high = g.bounds.high;
  for (int64_t j = 0; j < n; ++j) {
    float s = c[j] + t[j];
    if (end && bias) s += bias[j];
    if (end && g.bounds.clamp) {
      s = low > s ? low : s;
      s = high < s ? high : s;
    }
    c[j] = s;
  }
}

// k of extent zero: +0, then bias and clamp.
void FillEmpty(const Gemm& g, float* c, int64_t ldc, const float* bias, int64_t row_begin, int64_t row_end,
               int64_t begin, int64_t end) {
  const float zeros[1] = {};
  for (int64_t i = row_begin; i < row_end; ++i)
    for (int64_t j = begin; j < end; ++j) {
      c[i * ldc + j] = 0.0f;
      AddChunk(g, true, c + i * ldc + j, zeros, bias ? bias + j : nullptr, 1);
    }
}

struct Target {  // where one block of rows goes
  float* c;
  int64_t ldc;
  float* scratch;  // [rows][n]
  const float* bias;
};

class Block {
 public:
  Block(const Gemm& g, const GemmA& a, const GemmB& b, const Target& to, int64_t begin, int64_t end)
      : g_(g), a_(a), b_(b), to_(to), begin_(begin), end_(end) {}

  // Every panel of [panel_begin, panel_end) for one segment of k.
  void Segment(const KSegment& s, int64_t panel_begin, int64_t panel_end) {
    const int64_t whole = std::min(panel_end, g_.n / g_.columns());
    const bool inside = g_.plan.count == 1 && g_.plan.k * (whole - panel_begin) * g_.columns() <= kSmallB;
    if (inside && whole > panel_begin) {
      Panel(s, panel_begin, whole - panel_begin);
      panel_begin = whole;
    }
    for (int64_t j = panel_begin; j < panel_end; ++j) Panel(s, j, 1);
  }

  // Adds the scratch sums of a later chunk.
  void Add(int64_t column_begin, int64_t column_end, bool end) {
    for (int64_t i = begin_; i < end_; ++i)
      AddChunk(g_, end, to_.c + i * to_.ldc + column_begin, to_.scratch + (i - begin_) * g_.n + column_begin,
               to_.bias ? to_.bias + column_begin : nullptr, column_end - column_begin);
  }

 private:
  void Panel(const KSegment& s, int64_t panel, int64_t panels) {
    const int64_t columns = g_.columns(), n = panel * columns, width = PanelColumns(g_, panel);
    const int64_t row = g_.plan.tap_b ? s.start : s.row;
    const bool packed = !b_.in_place || width < columns;
    GemmTile t;
    t.taps = s.taps;
    t.depth = s.depth;
    t.tap_a = g_.tap_a + s.tap;
    t.tap_b = g_.plan.tap_b ? g_.plan.tap_b + s.tap : nullptr;
    t.ldb = packed ? width : b_.ldb;
    const float* b = !packed ? b_.in_place + n : b_.in_place ? b_.packed : b_.packed + n * g_.plan.k;
    t.b = b + row * t.ldb;
    t.panels = panels;
    t.panel_stride = packed ? columns * g_.plan.k : columns;
    t.columns = std::min(columns, g_.n - n);
    t.resume = !s.first;
    t.finish = s.last && !g_.plan.chunked;
    t.clamp = g_.bounds.clamp;
    t.low = g_.bounds.low;
    t.high = g_.bounds.high;
    t.bias = to_.bias && t.finish ? to_.bias + n : nullptr;
    t.ldc = s.chunk ? g_.n : to_.ldc;
    t.lda = a_.lda;
    float* c = s.chunk ? to_.scratch + n : to_.c + begin_ * to_.ldc + n;
    Rows(s, t, c, (t.columns + g_.kernels->lanes - 1) / g_.kernels->lanes);
  }

  void Rows(const KSegment& s, GemmTile& t, float* c, int64_t vectors) {
    const GemmKernels& k = *g_.kernels;
    const GemmTileFn* functions = g_.transposed ? k.tn : k.nn;
    const int64_t rows = end_ - begin_, tiles = (rows + k.rows - 1) / k.rows;
    const float* a = a_.data + (g_.transposed ? s.start * a_.lda : s.start);
    for (int64_t i = 0, m = 0; i < tiles; ++i) {  // rows spread evenly: never full tiles and a tiny rest
      const int64_t height = rows / tiles + (i < rows % tiles);
      t.row_offset = a_.row_offset ? a_.row_offset + begin_ + m : nullptr;
      t.a = g_.transposed ? a + begin_ + m : a_.row_offset ? a : a + (begin_ + m) * a_.lda;
      t.c = c + m * t.ldc;
      m += height;
      t.next = t.resume && i + 1 < tiles ? c + m * t.ldc : nullptr;
      functions[(height - 1) * k.vectors + vectors - 1](t);
    }
  }

  const Gemm& g_;
  const GemmA& a_;
  const GemmB& b_;
  const Target& to_;
  int64_t begin_, end_;
};

typedef float Four __attribute__((vector_size(16)));

// out[k][j] = b[j][k], four by four where both run.
void PackTransposed(float* out, int64_t width, const float* b, int64_t ldb, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < width; j += 4) {
    int64_t k = 0;
    if (j + 4 <= columns)
      for (; k + 4 <= rows; k += 4) {
        Four r0, r1, r2, r3;
        memcpy(&r0, b + j * ldb + k, 16);
        memcpy(&r1, b + (j + 1) * ldb + k, 16);
        memcpy(&r2, b + (j + 2) * ldb + k, 16);
        memcpy(&r3, b + (j + 3) * ldb + k, 16);
        const Four a0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), a1 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
        const Four b0 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), b1 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
        const Four rows4[4] = {__builtin_shufflevector(a0, b0, 0, 1, 4, 5), __builtin_shufflevector(a0, b0, 2, 3, 6, 7),
                               __builtin_shufflevector(a1, b1, 0, 1, 4, 5),
                               __builtin_shufflevector(a1, b1, 2, 3, 6, 7)};
        for (int u = 0; u < 4; ++u) memcpy(out + (k + u) * width + j, &rows4[u], 16);
      }
    for (; k < rows; ++k)
      for (int64_t u = j; u < j + 4 && u < width; ++u) out[k * width + u] = u < columns ? b[u * ldb + k] : 0.0f;
  }
}

void PackPlain(float* out, int64_t width, const float* b, int64_t ldb, int64_t rows, int64_t columns) {
  if (columns == 16 && width == 16) {  // the common panel, with a copy whose size the compiler knows
    for (int64_t k = 0; k < rows; ++k) memcpy(out + k * 16, b + k * ldb, 64);
    return;
  }
  for (int64_t k = 0; k < rows; ++k) {
    memcpy(out + k * width, b + k * ldb, static_cast<size_t>(columns) * sizeof(float));
    for (int64_t j = columns; j < width; ++j) out[k * width + j] = 0.0f;
  }
}

// One more piece of the plan; `segments` may be null while counting.
void Emit(KPlan* plan, KSegment* segments, int64_t tap, int64_t taps, int64_t start, int64_t depth, int64_t row) {
  if (segments) {
    KSegment s = {tap, taps, start, depth, row, true, true, static_cast<int32_t>(row / kChunk)};
    if (plan->count > 0) {
      KSegment& before = segments[plan->count - 1];
      const bool same = before.row / kChunk == row / kChunk;
      s.first = !same;
      before.last = !same;
    }
    segments[plan->count] = s;
  }
  ++plan->count;
}

// Cuts taps into pieces that cross neither a chunk nor a block.
void CutTaps(KPlan* plan, KSegment* segments, int64_t taps, int64_t depth, int64_t block) {
  plan->count = 0;
  const auto row = [&](int64_t t) { return plan->tap_b ? plan->tap_b[t] : t * depth; };
  for (int64_t t = 0; t < taps;) {
    const auto limit = [&](int64_t at) { return std::min((at / kChunk + 1) * kChunk, at + block); };
    int64_t run = 0;  // whole taps from t that end before the limit
    while (t + run < taps && row(t + run) + depth <= limit(row(t)) && (run + 1) * depth <= std::max(block, depth))
      ++run;
    if (run > 0) {
      Emit(plan, segments, t, run, 0, depth, row(t));
      t += run;
      continue;
    }
    for (int64_t start = 0; start < depth;) {
      const int64_t end = std::min(depth, limit(row(t) + start) - row(t));
      Emit(plan, segments, t, 1, start, end - start, row(t) + start);
      start = end;
    }
    ++t;
  }
}

}  // namespace

const GemmKernels& GemmFor(int64_t n, bool transposed) {
  const GemmFamily& family = kFamilies.Current();
  if (!transposed && family.by48 && n % 48 == 0) return *family.by48;
  if (!transposed && family.by64 && n % 64 == 0) return *family.by64;
  return *family.narrow;
}

Status PlanK(Prepare& ctx, int64_t taps, int64_t depth, int64_t block, int64_t k, const int64_t* tap_b, KPlan* plan) {
  plan->k = k;
  plan->tap_b = tap_b;
  plan->count = 0;
  if (depth > 0) CutTaps(plan, nullptr, taps, depth, block);
  if (plan->count == 0) return Status::kOk;
  KSegment* segments = ctx.AllocateArray<KSegment>(plan->count);
  if (!segments) return ctx.status();
  CutTaps(plan, segments, taps, depth, block);
  plan->segments = segments;
  // A chunk without taps adds nothing, so the chain that comes first is the one that C itself holds.
  const int32_t origin = segments[0].chunk;
  for (int64_t i = 0; i < plan->count; ++i) segments[i].chunk -= origin;
  plan->chunked = segments[plan->count - 1].chunk > 0;
  return Status::kOk;
}

int64_t Gemm::packed_size() const {
  const int64_t lanes = kernels->lanes, tail = n % columns();
  return plan.k * (n - tail + (tail + lanes - 1) / lanes * lanes);
}

int64_t Gemm::tail_size() const { return n % columns() ? plan.k * PanelColumns(*this, n / columns()) : 0; }

void PackRows(const Gemm& g, const float* b, int64_t ldb, bool transposed, int64_t row, int64_t rows, int64_t begin,
              int64_t end, float* packed) {
  for (int64_t j = begin; j < end; ++j) {
    const int64_t n = j * g.columns(), width = PanelColumns(g, j), columns = std::min(g.columns(), g.n - n);
    float* out = packed + n * g.plan.k + row * width;
    if (transposed) {
      PackTransposed(out, width, b + n * ldb, ldb, rows, columns);
    } else {
      PackPlain(out, width, b + n, ldb, rows, columns);
    }
  }
}

void PackB(const Gemm& g, const float* b, int64_t ldb, bool transposed, int64_t begin, int64_t end, float* packed) {
  PackRows(g, b, ldb, transposed, 0, g.plan.k, begin, end, packed);
}

void PackTail(const Gemm& g, const float* b, int64_t ldb, float* packed) {
  const int64_t panel = g.n / g.columns(), n = panel * g.columns();
  if (n < g.n) PackPlain(packed, PanelColumns(g, panel), b + n, ldb, g.plan.k, g.n - n);
}

void GemmBlock(const Gemm& g, const GemmA& a, const GemmB& b, float* c, int64_t ldc, const float* bias,
               int64_t row_begin, int64_t row_end, int64_t panel_begin, int64_t panel_end, float* scratch) {
  const int64_t column_begin = panel_begin * g.columns(), column_end = std::min(panel_end * g.columns(), g.n);
  if (column_begin >= column_end) return;
  if (g.plan.count == 0) return FillEmpty(g, c, ldc, bias, row_begin, row_end, column_begin, column_end);
  const Target to = {c, ldc, scratch, bias};
  const int32_t last = g.plan.segments[g.plan.count - 1].chunk;
  for (int64_t m = row_begin; m < row_end; m += g.row_block) {
    Block block(g, a, b, to, m, std::min(row_end, m + g.row_block));
    for (int64_t i = 0; i < g.plan.count; ++i) {
      const KSegment& s = g.plan.segments[i];
      block.Segment(s, panel_begin, panel_end);
      if (s.last && s.chunk > 0) block.Add(column_begin, column_end, s.chunk == last);
    }
  }
}

GemmSplit SplitGemm(const Gemm& g, int64_t rows, int threads) {
  const int64_t tiles = (rows + g.kernels->rows - 1) / g.kernels->rows;
  if (threads == 1) return {1, 1};
  if (tiles >= 2 * threads || tiles >= g.panels()) return {std::min<int64_t>(tiles, threads), 1};
  return {1, std::min<int64_t>(g.panels(), threads)};
}

void RunGemm(const Run& run, const Gemm& g, int64_t rows, const GemmA& a, const GemmB& b, float* c, int64_t ldc,
             const float* bias, float* scratch) {
  if (rows == 0 || g.n == 0) return;
  // Below about 32 thousand multiplications a part costs less than waking a thread.
  const bool small = rows * g.n * std::max<int64_t>(g.plan.k, 1) < 64 * 1024;
  const GemmSplit split = SplitGemm(g, rows, small ? 1 : run.pool->threads());
  const int64_t parts = split.row_parts * split.panel_parts, panels = g.panels();
  run.ParallelFor(parts, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t r = part % split.row_parts, p = part / split.row_parts;
      GemmBlock(g, a, b, c, ldc, bias, rows * r / split.row_parts, rows * (r + 1) / split.row_parts,
                panels * p / split.panel_parts, panels * (p + 1) / split.panel_parts,
                scratch ? scratch + thread * g.scratch_size(rows) : nullptr);
    }
  });
}

}  // namespace rillet
