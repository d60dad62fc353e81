// Compares the int8 inner loops of every ISA in this build with plain loops over 64-bit integers: random shapes around
// the tile sizes, extreme values, zero points at both ends, ties, fused bounds, accumulators that pass 2^31 once
// scaled. Run by test_int8_isas.py: natively, for aarch64 under qemu-user, and with AVX-512 VNNI emulated by SIMDe.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "products_s8.h"

using namespace rillet;

namespace {

uint32_t g_state = 12345;
int Random(int low, int high) {
  g_state = g_state * 1664525u + 1013904223u;
  return low + static_cast<int>((g_state >> 8) % static_cast<uint32_t>(high - low + 1));
}

struct Buffers {
  std::vector<void*> held;
  ~Buffers() {
    for (void* p : held) std::free(p);
  }
};
void* Take(void* memory, size_t bytes) {
  const size_t size = (bytes + kSlack + 63) / 64 * 64;
  void* p = std::aligned_alloc(64, size);
  std::memset(p, 0, size);
  static_cast<Buffers*>(memory)->held.push_back(p);
  return p;
}

int8_t Expect(int64_t acc, float scale, const OutputQuant& y) {
  double f = static_cast<double>(static_cast<float>(static_cast<int32_t>(acc)) * scale);
  f = std::fmin(std::fmax(f, y.low - y.zero_point), y.high - y.zero_point);
  return static_cast<int8_t>(std::nearbyint(f) + y.zero_point);
}

struct Problem {
  int64_t m, taps, depth, n;
  TensorQuant x;
  OutputQuant y;
  std::vector<int8_t> a, w;  // a[m][taps * depth], w[taps * depth][n]; depthwise: a[m][taps][n], w[taps][n]
  std::vector<int32_t> bias;
  std::vector<float> scale;
};

void FillRandom(Problem* p, int64_t k, int64_t a_size, int round) {
  p->a.resize(static_cast<size_t>(a_size + 64));
  p->w.resize(static_cast<size_t>(k * p->n));
  for (auto& v : p->a) v = static_cast<int8_t>(round % 4 == 1 ? Random(0, 1) * 255 - 128 : Random(-128, 127));
  for (auto& v : p->w) v = static_cast<int8_t>(round % 4 == 1 ? Random(0, 1) * 254 - 127 : Random(-127, 127));
  const int ends[5] = {-128, 127, 0, -7, 33};
  p->x = {0.5f, ends[Random(0, 4)]};
  p->y = {1.0f, ends[Random(0, 4)], kQMin, kQMax};
  if (round % 3 == 1) p->y.low = p->y.zero_point;
  if (round % 3 == 2) p->y.high = Random(p->y.zero_point, 127);
  for (int64_t i = 0; i < p->n; ++i) {
    p->bias.push_back(Random(-30000, 30000));
    // Ties (powers of two), generic scales, and scales that take the accumulator past int32.
    const float s = round % 2 ? std::ldexp(1.0f, -Random(0, 10)) : static_cast<float>(Random(20, 300)) / (6000.0f * k);
    p->scale.push_back(round % 10 == 9 ? 510.0f : s);
  }
}

int g_failures = 0;
long g_compared = 0;

void Compare(const char* what, const char* isa, const Problem& p, const std::vector<int8_t>& got, bool depthwise) {
  int bad = 0;
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = 0; n < p.n; ++n) {
      int64_t acc = p.bias[n];
      if (depthwise) {
        for (int64_t t = 0; t < p.taps; ++t)
          acc += (p.a[(m * p.taps + t) * p.n + n] - p.x.zero_point) * p.w[t * p.n + n];
      } else {
        for (int64_t k = 0; k < p.taps * p.depth; ++k)
          acc += (p.a[m * p.taps * p.depth + k] - p.x.zero_point) * p.w[k * p.n + n];
      }
      bad += got[m * p.n + n] != Expect(acc, p.x.scale * p.scale[n] / p.y.scale, p.y);
    }
  g_compared += p.m * p.n;
  if (!bad) return;
  ++g_failures;
  std::printf("%s on %s: %d of %ld differ (m %ld, taps %ld, depth %ld, n %ld)\n", what, isa, bad,
              static_cast<long>(p.m * p.n), static_cast<long>(p.m), static_cast<long>(p.taps),
              static_cast<long>(p.depth), static_cast<long>(p.n));
}

template <class Isa>
std::vector<uint8_t> Form(const Isa& isa, const std::vector<int8_t>& a, int form_bytes) {
  std::vector<uint8_t> formed(a.size() * static_cast<size_t>(form_bytes) + 64);
  if (isa.Form) isa.Form(formed.data(), a.data(), static_cast<int64_t>(a.size()));
  else std::memcpy(formed.data(), a.data(), a.size());
  return formed;
}

// One problem through an ISA's inner loop: rows and taps at their places in the formed activations.
bool RunOne(const char* name, const GemmS8* gemm, const DepthwiseS8* depthwise, Problem* p) {
  Buffers buffers;
  Message message;
  Prepare ctx;
  ctx.memory = &buffers;
  ctx.allocate = Take;
  ctx.message = &message;
  const int64_t values = depthwise ? p->taps * p->n : p->taps * p->depth;  // a row of `a`
  const WeightsS8 w = {p->w.data(), p->taps,        depthwise ? 1 : p->depth, p->n, p->n,
                       1,           p->bias.data(), p->scale.data(),          p->n};
  PackedS8 packed;
  const Status status =
      depthwise ? PackDepthwise(ctx, *depthwise, w, p->x, p->y, &packed) : PackGemm(ctx, *gemm, w, p->x, p->y, &packed);
  if (status != Status::kOk) {
    std::printf("%s\n", message.text);
    return false;
  }
  const int bytes = depthwise ? 1 : gemm->form_bytes;
  const std::vector<uint8_t> formed = depthwise ? Form(*depthwise, p->a, 1) : Form(*gemm, p->a, bytes);
  std::vector<const uint8_t*> rows;
  std::vector<int64_t> taps;
  for (int64_t m = 0; m < p->m; ++m) rows.push_back(formed.data() + m * values * bytes);
  for (int64_t t = 0; t < p->taps; ++t) taps.push_back(t * (depthwise ? p->n : p->depth) * bytes);
  std::vector<int8_t> out(static_cast<size_t>(p->m * p->n));
  if (depthwise)
    depthwise->Run({rows.data(), p->m, taps.data(), p->taps, p->n, packed.b, packed.bias, packed.scale, packed.epilogue,
                    out.data(), p->n});
  else
    gemm->Run({rows.data(), p->m, taps.data(), p->taps, p->depth, packed.b, packed.bias, packed.scale, p->n, 0,
               packed.panels, packed.epilogue, out.data(), p->n});
  Compare(depthwise ? "depthwise" : "gemm", name, *p, out, depthwise != nullptr);
  return true;
}

void Check(const char* name, const GemmS8* gemm, const DepthwiseS8* depthwise, int rounds) {
  const long before = g_compared;
  for (int round = 0; round < rounds; ++round) {
    Problem p = {Random(1, 30), Random(1, 4), Random(1, 70), Random(1, 150), {}, {}, {}, {}, {}, {}};
    FillRandom(&p, p.taps * p.depth, p.m * p.taps * p.depth, round);
    if (!RunOne(name, gemm, nullptr, &p)) ++g_failures;
    Problem d = {Random(1, 12), Random(1, 26), 1, Random(1, 150), {}, {}, {}, {}, {}, {}};
    FillRandom(&d, d.taps, d.m * d.taps * d.n, round);
    if (!RunOne(name, nullptr, depthwise, &d)) ++g_failures;
  }
  std::printf("%s: %ld outputs\n", name, g_compared - before);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 60;
  Check("scalar", &scalar::kGemmS8, &scalar::kDepthwiseS8, rounds);
#ifdef RILLET_HAVE_AVX2
  Check("avx2", &avx2::kGemmS8, &avx2::kDepthwiseS8, rounds);
#endif
#ifdef RILLET_HAVE_AVX512VNNI
  Check("avx512vnni", &avx512vnni::kGemmS8, &avx512vnni::kDepthwiseS8, rounds);
#endif
#ifdef RILLET_HAVE_NEON
  Check("neon", &neon::kGemmS8, &neon::kDepthwiseS8, rounds);
#endif
#ifdef RILLET_HAVE_NEONDOT
  Check("neondot", &neondot::kGemmS8, &neondot::kDepthwiseS8, rounds);
#endif
  return g_failures ? 1 : 0;
}
