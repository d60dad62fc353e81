// Shape, Size and Rank: numbers about a tensor, known when it is prepared.
#include "kernel.h"

namespace rillet {
namespace {

struct Numbers {
  int64_t of[kMaxRank];
  int32_t count;
};

Status PrepareNumbers(Prepare& p, const int64_t* numbers, int count, int rank) {
  const std::string_view type = p.String("out_type");
  if (p.status() != Status::kOk) return p.status();
  if (type != "i32" && type != "i64")
    return p.Fail("out_type: got '%.*s', expected i32 or i64", static_cast<int>(type.size()), type.data());
  Numbers* state = p.NewState<Numbers>();
  if (!state) return p.status();
  state->count = count;
  for (int i = 0; i < count; ++i) {
    if (type == "i32" && numbers[i] > INT32_MAX)
      return p.Fail("%lld does not fit i32: use out_type i64", static_cast<long long>(numbers[i]));
    state->of[i] = numbers[i];
  }
  const int64_t dims[1] = {count};
  return p.SetOutput(0, type == "i32" ? DType::kI32 : DType::kI64, rank, dims);
}

Status PrepareShape(Prepare& p) { return PrepareNumbers(p, p.in(0).dims, p.in(0).rank, 1); }

Status PrepareSize(Prepare& p) {
  const int64_t size = p.in(0).size();
  return PrepareNumbers(p, &size, 1, 0);
}

Status PrepareRank(Prepare& p) {
  const int64_t rank = p.in(0).rank;
  return PrepareNumbers(p, &rank, 1, 0);
}

Status RunNumbers(const Run& run) {
  const Numbers& numbers = run.state<Numbers>();
  const Tensor& y = run.out(0);
  for (int i = 0; i < numbers.count; ++i) {
    if (y.dtype == DType::kI32) y.as<int32_t>()[i] = static_cast<int32_t>(numbers.of[i]);
    else y.as<int64_t>()[i] = numbers.of[i];
  }
  return Status::kOk;
}

}  // namespace

const Kernel shape_any = {PrepareShape, RunNumbers};
const Kernel size_any = {PrepareSize, RunNumbers};
const Kernel rank_any = {PrepareRank, RunNumbers};

}  // namespace rillet
