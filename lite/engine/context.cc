#include "context.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace rillet {
namespace {
constexpr size_t kCacheSize = 4;
}

Result Context::Make(const Model& model, int threads, std::unique_ptr<Context>* context) {
  std::unique_ptr<Context> c(new Context(model, threads));
  if (c->ShapesAreKnown()) RILLET_TRY(c->PrepareNow());
  *context = std::move(c);
  return {};
}

Context::Context(const Model& model, int threads)
    : model_(model),
      pool_(threads),
      variables_(model.variables.size(), nullptr),
      unbound_(static_cast<int32_t>(model.variables.size())),
      times_(model.operations.size()) {
  for (const TensorInfo& t : model.tensors) {
    Shape s;
    s.rank = t.rank;
    std::memcpy(s.dims, t.dims, sizeof(s.dims));
    shapes_.push_back(s);
  }
}

bool Context::ShapesAreKnown() const {
  for (size_t t = 0; t < shapes_.size(); ++t)
    if (model_.tensors[t].kind != Kind::kTemporary)
      for (int32_t d = 0; d < shapes_[t].rank; ++d)
        if (shapes_[t].dims[d] < 0) return false;
  return true;
}

Result Context::CheckDims(const TensorInfo& info, const int64_t* dims, int32_t rank) const {
  bool fits = rank == info.rank;
  int64_t bytes = static_cast<int64_t>(SizeOf(info.dtype));
  for (int32_t d = 0; fits && d < rank; ++d) fits = dims[d] >= 0 && (info.dims[d] < 0 || info.dims[d] == dims[d]);
  if (!fits)
    return {RILLET_BAD_ARGUMENT, std::string("'") + info.name + "': got shape " +
                                     ShapeText(dims, rank < 0          ? 0
                                                     : rank > kMaxRank ? kMaxRank
                                                                       : rank) +
                                     ", expected " + ShapeText(info.dims, info.rank)};
  for (int32_t d = 0; d < rank; ++d)
    if (dims[d] && (__builtin_mul_overflow(bytes, dims[d], &bytes) || bytes > kMaxBytes))
      return {RILLET_BAD_ARGUMENT,
              std::string("'") + info.name + "': shape " + ShapeText(dims, rank) + " is too large"};
  return {};
}

Result Context::SetShape(int32_t tensor, const int64_t* dims, int32_t rank) {
  RILLET_TRY(CheckDims(model_.tensors[static_cast<size_t>(tensor)], dims, rank));
  Shape& s = shapes_[static_cast<size_t>(tensor)];
  if (rank && std::memcmp(s.dims, dims, sizeof(int64_t) * static_cast<size_t>(rank)) != 0) {
    std::memcpy(s.dims, dims, sizeof(int64_t) * static_cast<size_t>(rank));
    prepared_ = nullptr;
  }
  return {};
}

Result Context::Resize(int32_t input, const int64_t* dims, int32_t rank) {
  return SetShape(model_.inputs[input], dims, rank);
}

Result Context::BindVariable(int32_t variable, void* data, size_t bytes, const int64_t* dims, int32_t rank) {
  const int32_t tensor = model_.variables[static_cast<size_t>(variable)];
  const TensorInfo& info = model_.tensors[static_cast<size_t>(tensor)];
  RILLET_TRY(CheckDims(info, dims, rank));
  size_t want = SizeOf(info.dtype);
  for (int32_t d = 0; d < rank; ++d) want *= static_cast<size_t>(dims[d]);
  if (bytes != want)
    return {RILLET_BAD_ARGUMENT, std::string("variable '") + info.name + "': got " + std::to_string(bytes) +
                                     " bytes, expected " + std::to_string(want)};
  if (!data || reinterpret_cast<uintptr_t>(data) % SizeOf(info.dtype))
    return {RILLET_BAD_ARGUMENT,
            std::string("variable '") + info.name + "': memory is null or not aligned to its elements"};
  RILLET_TRY(SetShape(tensor, dims, rank));
  void*& bound = variables_[static_cast<size_t>(variable)];
  if (bound == data && prepared_) return {};
  if (!bound) --unbound_;
  bound = data;
  if (prepared_) prepared_->BindVariable(tensor, data);
  return {};
}

Prepared* Context::FindPrepared() {
  for (Cached& c : cache_) {
    bool same = true;
    for (size_t t = 0; same && t < shapes_.size(); ++t)
      same = std::equal(shapes_[t].dims, shapes_[t].dims + shapes_[t].rank, c.shapes[t].dims);
    if (!same) continue;
    c.used = ++uses_;
    return c.it.get();
  }
  return nullptr;
}

Result Context::PrepareNow() {
  if (prepared_) return {};
  if (!ShapesAreKnown()) {
    for (size_t t = 0; t < shapes_.size(); ++t)
      for (int32_t d = 0; model_.tensors[t].kind != Kind::kTemporary && d < shapes_[t].rank; ++d)
        if (shapes_[t].dims[d] < 0)
          return {RILLET_BAD_ARGUMENT, std::string("'") + model_.tensors[t].name + "': dimension " + std::to_string(d) +
                                           " is not known. Resize the input (or bind the variable) first"};
  }
  prepared_ = FindPrepared();
  if (!prepared_) {
    std::unique_ptr<Prepared> made;
    RILLET_TRY(Prepared::Make({&model_, shapes_, &pool_, &message_, keep_all_}, &made));
    if (cache_.size() == kCacheSize)
      cache_.erase(std::min_element(cache_.begin(), cache_.end(),
                                    [](const Cached& a, const Cached& b) { return a.used < b.used; }));
    prepared_ = made.get();
    cache_.push_back({shapes_, std::move(made), ++uses_});
  }
  for (size_t v = 0; v < variables_.size(); ++v)
    if (variables_[v]) prepared_->BindVariable(model_.variables[v], variables_[v]);
  message_.text[0] = 0;
  return {};
}

Result Context::Run() {
  if (!prepared_) RILLET_TRY(PrepareNow());
  if (unbound_) {
    size_t v = 0;
    while (variables_[v]) ++v;
    return {RILLET_BAD_ARGUMENT, std::string("variable '") +
                                     model_.tensors[static_cast<size_t>(model_.variables[v])].name + "' is not bound"};
  }
  if (timed_) return RunTimed();
  for (const Step& step : prepared_->steps)
    if (step.run(step.args) != Status::kOk) return Failed(step);
  return {};
}

Result Context::RunTimed() {
  using Clock = std::chrono::steady_clock;
  auto before = Clock::now();
  for (const Step& step : prepared_->steps) {
    if (step.run(step.args) != Status::kOk) return Failed(step);
    const auto now = Clock::now();
    Time& t = times_[static_cast<size_t>(step.operation)];
    t.nanoseconds += static_cast<uint64_t>(std::chrono::nanoseconds(now - before).count());
    ++t.runs;
    before = now;
  }
  return {};
}

Result Context::Failed(const Step& step) {
  Result r = {RILLET_BAD_DATA, Located(model_.operations[static_cast<size_t>(step.operation)]) + message_.text};
  message_.text[0] = 0;
  return r;
}

Tensor Context::Value(int32_t tensor) const {
  if (prepared_) return prepared_->values[static_cast<size_t>(tensor)];
  const TensorInfo& info = model_.tensors[static_cast<size_t>(tensor)];
  const Shape& s = shapes_[static_cast<size_t>(tensor)];
  Tensor t;
  t.dtype = info.dtype;
  t.quant = info.quant;
  t.data = info.data;
  t.rank = s.rank;
  std::memcpy(t.dims, s.dims, sizeof(t.dims));
  return t;
}

Result Context::KeepAll(bool keep) {
  if (keep != keep_all_) prepared_ = nullptr, cache_.clear();
  keep_all_ = keep;
  return {};
}

void Context::Profile(bool on) {
  timed_ = on;
  if (on) times_.assign(times_.size(), {});
}

}  // namespace rillet
