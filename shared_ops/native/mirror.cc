// The maps of MirrorPad (mirror.h).
#include "mirror.h"

namespace rillet {
namespace {

enum class Mode { kReflect, kSymmetric, kEdge, kWrap };

int64_t Source(Mode mode, int64_t i, int64_t size) {
  switch (mode) {
    case Mode::kEdge: return i < 0 ? 0 : i >= size ? size - 1 : i;
    case Mode::kWrap: return (i % size + size) % size;
    default: break;
  }
  const int64_t shift = mode == Mode::kSymmetric ? 1 : 0;
  if (i < 0) i = -i - shift;
  return i >= size ? 2 * (size - 1) + shift - i : i;
}

Status ReadMode(Prepare& p, Mode* mode) {
  const std::string_view name = p.String("mode");
  if (p.status() != Status::kOk) return p.status();
  if (name == "REFLECT") *mode = Mode::kReflect;
  else if (name == "SYMMETRIC") *mode = Mode::kSymmetric;
  else if (name == "EDGE") *mode = Mode::kEdge;
  else if (name == "WRAP") *mode = Mode::kWrap;
  else return p.Fail("mode: got '%.*s'", static_cast<int>(name.size()), name.data());
  return Status::kOk;
}

}  // namespace

Status PrepareMirror(Prepare& p, int rank, const int64_t* dims, Span<int64_t> paddings, size_t element) {
  Mode mode = Mode::kReflect;
  if (ReadMode(p, &mode) != Status::kOk) return p.status();
  Mirror* m = p.NewState<Mirror>();
  if (!m) return p.status();
  m->element = static_cast<int64_t>(element);
  while (rank > 1 && paddings[2 * rank - 2] == 0 && paddings[2 * rank - 1] == 0) m->element *= dims[--rank];
  static const int64_t kOrigin[1] = {0};
  m->axes[0] = {1, 1, kOrigin};
  m->rank = rank > 0 ? rank : 1;
  m->rows = 1;
  for (int i = 0; i < rank; ++i) {
    const int64_t before = paddings[2 * i], after = paddings[2 * i + 1], size = dims[i] + before + after;
    const int64_t reach = before > after ? before : after;
    const bool far = mode == Mode::kReflect     ? reach >= dims[i]
                     : mode == Mode::kSymmetric ? reach > dims[i]
                                                : dims[i] == 0;
    if (reach > 0 && far)
      return p.Fail("padding of axis %d reaches too far: got %lld for a dimension of %lld", i,
                    static_cast<long long>(reach), static_cast<long long>(dims[i]));
    int64_t* source = p.AllocateArray<int64_t>(size > 0 ? size : 1);
    if (!source) return p.status();
    for (int64_t k = 0; k < size; ++k) source[k] = Source(mode, k - before, dims[i]);
    m->axes[i] = {size, dims[i], source};
    if (i < rank - 1) m->rows *= size;
  }
  m->row_bytes = m->element * m->axes[m->rank - 1].size;
  m->source_row_bytes = m->element * m->axes[m->rank - 1].source_size;
  return Status::kOk;
}

}  // namespace rillet
