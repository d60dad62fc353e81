// ScatterUpdate and ScatterAdd: rows of a variable, in the order of the indices. Threads take parts of every row, so
// equal indices meet in one order.
#include "kernel.h"

namespace rillet {
namespace {

struct State {
  int64_t rows, row_size, count;
};

Status PrepareScatter(Prepare& ctx) {
  State* s = ctx.NewState<State>();
  if (!s || ctx.NeedVariable(0) != Status::kOk) return ctx.status();
  const Tensor &var = ctx.in(0), &indices = ctx.in(1), &updates = ctx.in(2);
  if (indices.dtype != DType::kI32 && indices.dtype != DType::kI64)
    return ctx.Fail("dtype of indices: got %s, expected i32 or i64", NameOf(indices.dtype));
  if (updates.dtype != var.dtype)
    return ctx.Fail("updates: got %s, expected %s", NameOf(updates.dtype), NameOf(var.dtype));
  if (var.rank < 1 || updates.rank != indices.rank + var.rank - 1)
    return ctx.Fail("rank of updates: got %d, expected %d", updates.rank, indices.rank + var.rank - 1);
  for (int a = 0; a < updates.rank; ++a)
    if (updates.dims[a] != (a < indices.rank ? indices.dims[a] : var.dims[a - indices.rank + 1]))
      return ctx.Fail("updates: dimension %d differs from that of indices and var", a);
  s->rows = var.dims[0];
  s->count = indices.size();
  s->row_size = 1;
  for (int a = 1; a < var.rank; ++a) s->row_size *= var.dims[a];
  return Status::kOk;
}

// Calls row(offset in var, offset in updates, first, last) for each index, over parts [first, last) of the rows.
template <class Row>
Status ForRows(const Run& run, const Row& row) {
  const State& s = run.state<State>();
  const Tensor& indices = run.in(1);
  const auto index = [&](int64_t i) -> int64_t {
    return indices.dtype == DType::kI64 ? indices.as<const int64_t>()[i] : indices.as<const int32_t>()[i];
  };
  for (int64_t i = 0; i < s.count; ++i)
    if (index(i) < 0 || index(i) >= s.rows)
      return run.Fail("index %lld: got %lld, expected a row from 0 to %lld", static_cast<long long>(i),
                      static_cast<long long>(index(i)), static_cast<long long>(s.rows - 1));
  run.ParallelFor(s.row_size, 1 + 16384 / (s.count + 1), [&](int64_t first, int64_t last, int) {
    for (int64_t i = 0; i < s.count; ++i) row(index(i) * s.row_size, i * s.row_size, first, last);
  });
  return Status::kOk;
}

Status RunUpdate(const Run& run) {
  const size_t width = SizeOf(run.in(0).dtype);
  char* var = run.in(0).as<char>();
  const char* updates = run.in(2).as<const char>();
  return ForRows(run, [=](int64_t to, int64_t from, int64_t first, int64_t last) {
    std::memcpy(var + static_cast<size_t>(to + first) * width, updates + static_cast<size_t>(from + first) * width,
                static_cast<size_t>(last - first) * width);
  });
}

// T: float, or an unsigned integer, which wraps around as the signed one of its width does.
template <class T>
Status RunAdd(const Run& run) {
  T* var = static_cast<T*>(run.in(0).data);
  const T* updates = static_cast<const T*>(run.in(2).data);
  return ForRows(run, [=](int64_t to, int64_t from, int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) var[to + k] += updates[from + k];
  });
}

}  // namespace

const Kernel scatter_update_any = {PrepareScatter, RunUpdate};
const Kernel scatter_add_f32 = {PrepareScatter, RunAdd<float>};
const Kernel scatter_add_i32 = {PrepareScatter, RunAdd<uint32_t>};
const Kernel scatter_add_i64 = {PrepareScatter, RunAdd<uint64_t>};

}  // namespace rillet
