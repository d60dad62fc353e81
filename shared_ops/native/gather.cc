// Gather, GatherNd, ScatterNd, UnsortedSegmentSum. An index outside the table fails the run.
#include "scatter.h"
#include "strided_copy.h"

namespace rillet {
namespace {

constexpr int64_t kGrainBytes = 32 << 10;

template <int kBytes>
void CopyRows(int64_t n, const char* table, const Tensor& rows, int64_t first, char* y) {
  for (int64_t i = 0; i < n; ++i) memcpy(y + i * kBytes, table + IndexAt(rows, first + i) * kBytes, kBytes);
}

// Slices `first` to `first + n` of one table.
void CopySlices(int64_t bytes, int64_t n, const char* table, const Tensor& rows, int64_t first, char* y) {
  if (bytes == 4) return CopyRows<4>(n, table, rows, first, y);
  if (bytes == 1) return CopyRows<1>(n, table, rows, first, y);
  for (int64_t i = 0; i < n; ++i)
    memcpy(y + i * bytes, table + IndexAt(rows, first + i) * bytes, static_cast<size_t>(bytes));
}

Status PrepareGather(Prepare& p) {
  const Tensor& x = p.in(0);
  TableShape* s = p.NewState<TableShape>();
  if (!s) return p.status();
  int64_t dims[kMaxRank];
  int rank = 0;
  if (ReadGather(p, x.rank, x.dims, p.in(1), s, dims, &rank) != Status::kOk) return p.status();
  return p.SetOutput(0, x.dtype, rank, dims);
}

Status RunGather(const Run& run) {
  const TableShape& s = run.state<TableShape>();
  const Tensor &x = run.in(0), &indices = run.in(1), &y = run.out(0);
  if (CheckIndices(run, indices, s.limit) != Status::kOk) return Status::kInvalid;
  const int64_t bytes = s.inner * static_cast<int64_t>(SizeOf(x.dtype));
  if (bytes == 0) return Status::kOk;
  run.ParallelFor(s.batch * s.outer * s.count, 1 + kGrainBytes / bytes, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t table = begin / s.count, first = begin % s.count;
      const int64_t n = end - begin < s.count - first ? end - begin : s.count - first;
      CopySlices(bytes, n, x.as<char>() + table * s.limit * bytes, indices, table / s.outer * s.count + first,
                 y.as<char>() + begin * bytes);
      begin += n;
    }
  });
  return Status::kOk;
}

// The rows that the index vectors name stand in the workspace.
Status PrepareVectors(Prepare& p, int rank, const int64_t* dims, const Tensor& indices, int64_t* result,
                      int* result_rank) {
  VectorShape* s = p.NewState<VectorShape>();
  if (!s || ReadGatherNd(p, rank, dims, indices, s, result, result_rank) != Status::kOk) return p.status();
  p.NeedWorkspace(static_cast<size_t>(s->batches * s->per_batch) * sizeof(int64_t));
  return Status::kOk;
}

Status PrepareGatherNd(Prepare& p) {
  const Tensor& x = p.in(0);
  int64_t dims[kMaxRank];
  int rank = 0;
  if (PrepareVectors(p, x.rank, x.dims, p.in(1), dims, &rank) != Status::kOk) return p.status();
  return p.SetOutput(0, x.dtype, rank, dims);
}

Status RunGatherNd(const Run& run) {
  const VectorShape& s = run.state<VectorShape>();
  int64_t* slices = static_cast<int64_t*>(run.workspace);
  if (FindSlices(run, s, run.in(1), slices) != Status::kOk) return Status::kInvalid;
  const int64_t bytes = s.inner * static_cast<int64_t>(SizeOf(run.in(0).dtype));
  const char* x = run.in(0).as<char>();
  char* y = run.out(0).as<char>();
  run.ParallelFor(s.batches * s.per_batch, 1 + kGrainBytes / (bytes + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) memcpy(y + i * bytes, x + slices[i] * bytes, static_cast<size_t>(bytes));
  });
  return Status::kOk;
}

bool SameDims(const Tensor& t, int rank, const int64_t* dims) {
  if (t.rank != rank) return false;
  for (int i = 0; i < rank; ++i)
    if (t.dims[i] != dims[i]) return false;
  return true;
}

Status PrepareScatterNd(Prepare& p) {
  int64_t dims[kMaxRank], expected[kMaxRank];
  const int rank = ReadShape(p, 2, dims);
  if (rank < 0 || p.SetOutput(0, p.in(1).dtype, rank, dims) != Status::kOk) return p.status();
  int updates_rank = 0;
  if (PrepareVectors(p, rank, dims, p.in(0), expected, &updates_rank) != Status::kOk) return p.status();
  if (!AdderOf(p.in(1).dtype)) return p.Fail("updates: got %s, expected numbers", NameOf(p.in(1).dtype));
  if (!SameDims(p.in(1), updates_rank, expected)) return p.Fail("updates do not have the shape that indices ask for");
  return Status::kOk;
}

Status RunScatterNd(const Run& run) {
  const VectorShape& s = run.state<VectorShape>();
  int64_t* slices = static_cast<int64_t*>(run.workspace);
  if (FindSlices(run, s, run.in(0), slices) != Status::kOk) return Status::kInvalid;
  TableShape table;
  table.limit = s.slices;
  table.count = s.batches * s.per_batch;
  table.inner = s.inner;
  AddSlices(run, table, run.in(1), run.out(0), [slices](int64_t, int64_t i) { return slices[i]; });
  return Status::kOk;
}

Status PrepareSegmentSum(Prepare& p) {
  const Tensor &data = p.in(0), &ids = p.in(1);
  const int64_t segments = p.Int("num_segments");
  if (p.status() != Status::kOk) return p.status();
  if (segments < 0) return p.Fail("num_segments: got %lld, expected 0 or more", static_cast<long long>(segments));
  if (!IsIndexType(ids.dtype)) return p.Fail("segment_ids: got %s, expected i32 or i64", NameOf(ids.dtype));
  if (!AdderOf(data.dtype)) return p.Fail("data: got %s, expected numbers", NameOf(data.dtype));
  if (ids.rank > data.rank || !SameDims(ids, ids.rank, data.dims))
    return p.Fail("segment_ids: expected the shape of the leading dimensions of data");
  TableShape* s = p.NewState<TableShape>();
  if (!s) return p.status();
  s->limit = segments;
  s->count = ids.size();
  int64_t dims[kMaxRank] = {segments};
  int rank = 1;
  for (int i = ids.rank; i < data.rank; ++i) {
    if (rank == kMaxRank) return p.Fail("too many dimensions: expected at most %d", kMaxRank);
    s->inner *= dims[rank++] = data.dims[i];
  }
  return p.SetOutput(0, data.dtype, rank, dims);
}

Status RunSegmentSum(const Run& run) {
  const TableShape& s = run.state<TableShape>();
  const Tensor& ids = run.in(1);
  for (int64_t i = 0; i < s.count; ++i)
    if (IndexAt(ids, i) >= s.limit) return FailIndex(run, ids, i, s.limit);
  AddSlices(run, s, run.in(0), run.out(0), [&ids](int64_t, int64_t i) { return IndexAt(ids, i); });
  return Status::kOk;
}

}  // namespace

const Kernel gather_any = {PrepareGather, RunGather};
const Kernel gather_nd_any = {PrepareGatherNd, RunGatherNd};
const Kernel scatter_nd_any = {PrepareScatterNd, RunScatterNd};
const Kernel unsorted_segment_sum_any = {PrepareSegmentSum, RunSegmentSum};

}  // namespace rillet
