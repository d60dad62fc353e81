// Chooses the set of loops, and spreads the reduction of a matrix's columns over threads.
#include "nn_f32.h"

namespace rillet {

namespace scalar {
extern const NnF32 kNnF32;
}
namespace avx2 {
extern const NnF32 kNnF32;
}
namespace avx512 {
extern const NnF32 kNnF32;
}
namespace neon {
extern const NnF32 kNnF32;
}

const NnF32& CurrentNnF32() {
  static constexpr IsaTable<NnF32> kTable = {
      &scalar::kNnF32, RILLET_AVX2(&avx2::kNnF32), RILLET_AVX512(&avx512::kNnF32),
      nullptr,         RILLET_NEON(&neon::kNnF32), nullptr};
  return kTable.Current();
}

void ReduceColumns(const Run& run, const NnF32& loops, ColumnReduction kind, const Columns& m, float* workspace,
                   float* y) {
  constexpr int64_t kBlockFloats = kColumnBlock * kReduceLanes;
  // Four lanes at a time: few columns (a batch norm of 16 channels) still fill four threads.
  constexpr int64_t kGroups = 4, kGroupLanes = kReduceLanes / kGroups;
  const int64_t blocks = (m.width + kColumnBlock - 1) / kColumnBlock;
  const auto width = [&](int64_t block) {
    const int64_t rest = m.width - block * kColumnBlock;
    return rest < kColumnBlock ? rest : kColumnBlock;
  };
  if (run.pool->threads() == 1) {
    for (int64_t b = 0; b < blocks; ++b) {
      loops.columns[kind](m, b * kColumnBlock, width(b), 0, kReduceLanes, workspace);
      loops.join[kind](workspace, width(b), y + b * kColumnBlock);
    }
    return;
  }
  const int64_t grain = m.rows * kColumnBlock < 16384 ? kGroups : 1;
  run.ParallelFor(blocks * kGroups, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / kGroups;
      const int lane = static_cast<int>(i % kGroups * kGroupLanes);
      loops.columns[kind](m, b * kColumnBlock, width(b), lane, lane + static_cast<int>(kGroupLanes),
                          workspace + b * kBlockFloats);
    }
  });
  for (int64_t b = 0; b < blocks; ++b) loops.join[kind](workspace + b * kBlockFloats, width(b), y + b * kColumnBlock);
}

}  // namespace rillet
