// rillet-run: runs models on raw input files and prints a CRC-32 of every result. For devices without Python, and for
// comparing machines byte by byte.
//
//   rillet-run [--threads N] [--isa NAME] MODEL [FILE...]    files: bytes of each input, then of each variable
//   rillet-run [--threads N] [--isa NAME] --list FILE        one such line a model: MODEL FILE...
//   rillet-run --kernels                                     the kernels in this library, and the instruction set in
//   use
//
// Prints one line a model: its path, then the CRC-32 of each output and of each variable after the run, or the error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "crc32.h"
#include "rillet.h"

namespace {

using Strings = std::vector<std::string>;

bool ReadFile(const std::string& path, void* to, size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  return static_cast<size_t>(file.gcount()) == bytes && file.peek() == std::ifstream::traits_type::eof();
}

// Fills inputs and variables from the files, runs, and adds the sums to `text`. False: see rillet_error().
bool RunOnce(rillet_context* context, const Strings& files, std::string* text) {
  const int32_t inputs = rillet_input_count(context), variables = rillet_variable_count(context);
  std::vector<std::vector<uint64_t>> memory(static_cast<size_t>(variables));  // aligned to any element
  for (int32_t i = 0; i < inputs + variables; ++i) {
    rillet_tensor_info info;
    if ((i < inputs ? rillet_input_info(context, i, &info) : rillet_variable_info(context, i - inputs, &info)) !=
        RILLET_OK)
      return false;
    void* data = nullptr;
    if (i < inputs) {
      data = rillet_input_data(context, i);
    } else {
      auto& m = memory[static_cast<size_t>(i - inputs)];
      m.resize(info.bytes / 8 + 1);
      data = m.data();
      if (rillet_bind_variable(context, i - inputs, data, info.bytes, info.dims, info.rank) != RILLET_OK) return false;
    }
    if (!data) return false;
    if (static_cast<size_t>(i) < files.size() && !ReadFile(files[static_cast<size_t>(i)], data, info.bytes)) {
      *text += " cannot read " + files[static_cast<size_t>(i)];
      return true;
    }
  }
  if (rillet_run(context) != RILLET_OK) return false;
  auto add = [&](const void* data, size_t bytes) {
    char sum[16];
    std::snprintf(sum, sizeof(sum), " %08x", rillet::Crc32(data, bytes));
    *text += sum;
  };
  for (int32_t i = 0; i < rillet_output_count(context); ++i) {
    rillet_tensor_info info;
    if (rillet_output_info(context, i, &info) != RILLET_OK) return false;
    add(rillet_output_data(context, i), info.bytes);
  }
  for (int32_t i = 0; i < variables; ++i) {
    rillet_tensor_info info;
    if (rillet_variable_info(context, i, &info) != RILLET_OK) return false;
    add(memory[static_cast<size_t>(i)].data(), info.bytes);
  }
  return true;
}

bool RunModel(const Strings& line, int threads) {
  rillet_model* model = nullptr;
  rillet_context* context = nullptr;
  std::string text = line[0];
  const bool ok = rillet_model_load_file(line[0].c_str(), &model) == RILLET_OK &&
                  rillet_context_new(model, threads, &context) == RILLET_OK &&
                  RunOnce(context, Strings(line.begin() + 1, line.end()), &text);
  if (!ok) text += std::string(" error: ") + rillet_error();
  std::printf("%s\n", text.c_str());
  rillet_context_free(context);
  rillet_model_free(model);
  return ok;
}

int ListKernels() {
  std::printf("isa %s\n", rillet_isa());
  for (int32_t i = 0; i < rillet_kernel_count(); ++i) {
    const char *op, *dtype;
    int32_t version;
    uint32_t flags;
    if (rillet_kernel_info(i, &op, &version, &dtype, &flags) == RILLET_OK)
      std::printf("%s %d %s %u\n", op, version, dtype, flags);
  }
  return 0;
}

Strings Words(const std::string& line) {
  std::istringstream words(line);
  return Strings(std::istream_iterator<std::string>(words), {});
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 1;
  std::string list;
  Strings line;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (!std::strcmp(argv[i], "--threads") && more) threads = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--kernels")) return ListKernels();
    else if (!std::strcmp(argv[i], "--list") && more) list = argv[++i];
    else if (!std::strcmp(argv[i], "--isa") && more) {
      if (rillet_set_isa(argv[++i]) != RILLET_OK) return std::fprintf(stderr, "%s\n", rillet_error()), 2;
    } else line.push_back(argv[i]);
  }
  if (line.empty() == list.empty())
    return std::fprintf(stderr,
                        "usage: rillet-run [--threads N] [--isa NAME] MODEL [FILE...] | --list FILE | --kernels\n"),
           2;
  if (list.empty()) return RunModel(line, threads) ? 0 : 1;
  bool ok = true;
  std::ifstream lines(list);
  for (std::string text; std::getline(lines, text);)
    if (Strings words = Words(text); !words.empty()) ok &= RunModel(words, threads);
  return ok ? 0 : 1;
}
