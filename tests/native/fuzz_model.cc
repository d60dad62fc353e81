// Feeds damaged copies of a model to the engine: cut off at every length, then with single bytes changed at random,
// half of them with the checksums put right afterwards, so that the deeper checks are reached. Loads, prepares and runs
// each one. Prints how often each status came. Built with sanitizers, it must end by itself.
//
//   rillet-fuzz MODEL MUTATIONS SEED
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "crc32.h"
#include "model_generated.h"
#include "rillet.h"

namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kHeader = 64;

struct Section {
  size_t offset, size, crc_at;
};

// Where sections lie and where their checksums stand, by the undamaged file.
std::vector<Section> FindSections(const Bytes& file) {
  std::vector<Section> found;
  const rillet::format::Model* model = rillet::format::GetModel(file.data() + kHeader);
  for (const rillet::format::Section* s : *model->sections()) {
    const size_t at = static_cast<size_t>(reinterpret_cast<const uint8_t*>(s) - file.data());
    found.push_back({s->offset(), s->size(), at + 16});
  }
  return found;
}

void FixChecksums(Bytes* file, const std::vector<Section>& sections) {
  uint8_t* p = file->data();
  for (const Section& s : sections) {
    const uint32_t crc = rillet::Crc32(p + s.offset, s.size);
    std::memcpy(p + s.crc_at, &crc, 4);
  }
  uint64_t n;
  std::memcpy(&n, p + 16, 8);
  if (n > file->size() - kHeader) return;
  const uint32_t crc = rillet::Crc32(p + kHeader, n, rillet::Crc32(p + 16, 16));
  std::memcpy(p + 12, &crc, 4);
}

rillet_status Run(rillet_context* context) {
  for (int32_t i = 0; i < rillet_input_count(context); ++i) {
    rillet_tensor_info info;
    if (rillet_status s = rillet_input_info(context, i, &info)) return s;
    for (int32_t d = 0; d < info.rank; ++d)
      if (info.dims[d] < 0) info.dims[d] = 2;
    if (rillet_status s = rillet_resize(context, i, info.dims, info.rank)) return s;
  }
  std::vector<std::unique_ptr<uint64_t[]>> memory;
  for (int32_t i = 0; i < rillet_variable_count(context); ++i) {
    rillet_tensor_info info;
    if (rillet_status s = rillet_variable_info(context, i, &info)) return s;
    if (info.bytes > (1u << 20)) return RILLET_OUT_OF_MEMORY;
    memory.emplace_back(new uint64_t[info.bytes / 8 + 1]());
    if (rillet_status s = rillet_bind_variable(context, i, memory.back().get(), info.bytes, info.dims, info.rank))
      return s;
  }
  if (rillet_status s = rillet_run(context)) return s;
  for (int32_t i = 0; i < rillet_output_count(context); ++i) {
    rillet_tensor_info info;
    if (rillet_status s = rillet_output_info(context, i, &info)) return s;
    volatile uint32_t sum = rillet::Crc32(rillet_output_data(context, i), info.bytes);  // every byte can be read
    (void)sum;
  }
  return RILLET_OK;
}

// A copy of exactly `size` bytes at an odd address now and then, so that reads past the end are seen.
rillet_status Try(const uint8_t* bytes, size_t size, size_t shift) {
  std::unique_ptr<uint8_t[]> copy(new uint8_t[size + shift]);
  if (size) std::memcpy(copy.get() + shift, bytes, size);
  rillet_model* model = nullptr;
  rillet_context* context = nullptr;
  rillet_status status = rillet_model_load_memory(copy.get() + shift, size, &model);
  if (!status) status = rillet_context_new(model, 1, &context);
  if (!status) status = Run(context);
  rillet_context_free(context);
  rillet_model_free(model);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: rillet-fuzz MODEL MUTATIONS SEED\n"), 2;
  std::ifstream stream(argv[1], std::ios::binary);
  const Bytes file((std::istreambuf_iterator<char>(stream)), {});
  rillet_set_memory_limit(4u << 20);
  long counts[16] = {};
  if (Try(file.data(), file.size(), 0) != RILLET_OK)
    return std::fprintf(stderr, "the undamaged model fails: %s\n", rillet_error()), 2;
  for (size_t size = 0; size < file.size(); ++size) {
    const rillet_status status = Try(file.data(), size, 0);
    if (status == RILLET_OK) return std::fprintf(stderr, "%zu of %zu bytes were accepted\n", size, file.size()), 1;
    ++counts[status];
  }
  const std::vector<Section> sections = FindSections(file);
  std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
  for (long i = std::atol(argv[2]); i > 0; --i) {
    Bytes damaged = file;
    damaged[random() % file.size()] ^= static_cast<uint8_t>(1 + random() % 255);
    if (random() % 2) FixChecksums(&damaged, sections);
    ++counts[Try(damaged.data(), damaged.size(), random() % 4 ? 0 : random() % 64)];
  }
  for (int s = 0; s < 15; ++s) std::printf("%s %ld\n", rillet_status_name(static_cast<rillet_status>(s)), counts[s]);
  return 0;
}
