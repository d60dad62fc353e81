// RandomUniform, RandomNormal, TruncatedNormal and Dropout in float32. Every element is a function of (seed, stream,
// step) and its place, so threads take chunks as they come.
#include "nn_f32.h"
#include "philox.h"
#include "strided_copy.h"

namespace rillet {
namespace {

constexpr int64_t kChunk = 512;  // elements, in whole blocks of the generator and whole vectors
constexpr int kAttempts = 16;    // see ops/random.py

struct State {
  const NnF32* loops;
  PhiloxKey key;
  float rate, scale;  // of Dropout
};

State* Start(Prepare& ctx) {
  State* s = ctx.NewState<State>();
  if (!s) return nullptr;
  s->loops = &CurrentNnF32();
  s->key = KeyOf(ctx.Int("seed"), ctx.Int("stream"));
  const Tensor& step = ctx.in(1);
  if (step.dtype != DType::kI64 || step.rank != 0) (void)ctx.Fail("step: expected an i64 scalar");
  return s;
}

Status PrepareRandom(Prepare& ctx) {
  if (!Start(ctx) || ctx.status() != Status::kOk) return ctx.status();
  int64_t dims[kMaxRank];
  const int rank = ReadShape(ctx, 0, dims);
  return rank < 0 ? ctx.status() : ctx.SetOutput(0, DType::kF32, rank, dims);
}

Status PrepareDropout(Prepare& ctx) {
  State* s = Start(ctx);
  if (!s) return ctx.status();
  const double rate = ctx.Double("rate");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (!(rate >= 0 && rate < 1)) return ctx.Fail("rate: got %g, expected from 0 to below 1", rate);
  s->rate = static_cast<float>(rate);
  s->scale = static_cast<float>(1 / (1 - rate));
  return ctx.SetOutputLike(0, ctx.in(0));
}

// A draw of one step: the words of any chunk.
struct Draw {
  const State& s;
  uint64_t step;

  void Words(int64_t chunk, int attempt, uint32_t* words) const {
    const uint64_t first = static_cast<uint64_t>(chunk) * (kChunk / 4);
    for (uint64_t b = 0; b < kChunk / 4; ++b)
      Philox(s.key, first + b, static_cast<uint32_t>(attempt), step, words + 4 * b);
  }

  void Normals(int64_t chunk, int attempt, float* z) const {
    alignas(64) uint32_t words[kChunk];
    alignas(64) float u[kChunk / 2], turn[kChunk / 2];
    Words(chunk, attempt, words);
    for (int64_t p = 0; p < kChunk / 2; ++p) {
      u[p] = UniformOf(words[2 * p]) + 0x1p-24f;  // (0, 1]: the logarithm is finite
      turn[p] = UniformOf(words[2 * p + 1]);
    }
    s.loops->normal_pairs(u, turn, kChunk / 2, z);
  }

  void Truncated(int64_t chunk, float* z) const {
    alignas(64) float again[kChunk];
    Normals(chunk, 0, z);
    for (int attempt = 1; attempt < kAttempts; ++attempt) {
      bool beyond = false;
      for (int64_t i = 0; i < kChunk; ++i) beyond |= z[i] < -2.0f || z[i] > 2.0f;
      if (!beyond) return;
      Normals(chunk, attempt, again);
      for (int64_t i = 0; i < kChunk; ++i)
        if (z[i] < -2.0f || z[i] > 2.0f) z[i] = again[i];
    }
    for (int64_t i = 0; i < kChunk; ++i) z[i] = z[i] < -2.0f ? -2.0f : z[i] > 2.0f ? 2.0f : z[i];
  }
};

// Calls body(draw, chunk, first element, number of elements) for all of output 0.
template <class Body>
Status ForChunks(const Run& run, const Body& body) {
  const Draw draw{run.state<State>(), static_cast<uint64_t>(*run.in(1).as<const int64_t>())};
  const int64_t size = run.out(0).size();
  run.ParallelFor((size + kChunk - 1) / kChunk, 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kChunk;
      body(draw, chunk, first, size - first < kChunk ? size - first : kChunk);
    }
  });
  return Status::kOk;
}

Status RunUniform(const Run& run) {
  float* y = run.out(0).as<float>();
  return ForChunks(run, [&](const Draw& draw, int64_t chunk, int64_t first, int64_t n) {
    alignas(64) uint32_t words[kChunk];
    draw.Words(chunk, 0, words);
    for (int64_t i = 0; i < n; ++i) y[first + i] = UniformOf(words[i]);
  });
}

template <bool truncated>
Status RunNormal(const Run& run) {
  float* y = run.out(0).as<float>();
  return ForChunks(run, [&](const Draw& draw, int64_t chunk, int64_t first, int64_t n) {
    alignas(64) float z[kChunk];
    if (truncated) draw.Truncated(chunk, z);
    else draw.Normals(chunk, 0, z);
    std::memcpy(y + first, z, static_cast<size_t>(n) * sizeof(float));
  });
}

// The choice is made by bits, not by a branch that half of the elements would mispredict.
void Keep(const float* x, const uint32_t* words, const State& s, int64_t n, float* y) {
  const float rate = s.rate, scale = s.scale;
  for (int64_t i = 0; i < n; ++i) {
    const float kept = x[i] * scale;
    uint32_t bits;
    std::memcpy(&bits, &kept, 4);
    bits &= 0u - static_cast<uint32_t>(UniformOf(words[i]) >= rate);
    std::memcpy(y + i, &bits, 4);
  }
}

Status RunDropout(const Run& run) {
  const State& s = run.state<State>();
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  return ForChunks(run, [&](const Draw& draw, int64_t chunk, int64_t first, int64_t n) {
    alignas(64) uint32_t words[kChunk];
    draw.Words(chunk, 0, words);
    Keep(x + first, words, s, n, y + first);
  });
}

}  // namespace

const Kernel random_uniform_any = {PrepareRandom, RunUniform};
const Kernel random_normal_any = {PrepareRandom, RunNormal<false>};
const Kernel truncated_normal_any = {PrepareRandom, RunNormal<true>};
const Kernel dropout_f32 = {PrepareDropout, RunDropout};

}  // namespace rillet
