#include "verify.h"

#include <cstring>

#include "crc32.h"

namespace rillet {
namespace {

constexpr char kMagic[9] = "RILLET\r\n";
constexpr uint32_t kFormatVersion = 1;

template <class T>
T Read(const uint8_t* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof(T));
  return value;
}

size_t PadUp(size_t n) { return (n + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment; }

// Leaves the size of the FlatBuffer in `*structure`.
Result VerifyHeader(const uint8_t* bytes, size_t size, size_t* structure) {
  if (std::memcmp(bytes, kMagic, size < 8 ? size : 8) != 0)
    return Refuse(RILLET_BAD_MAGIC, "not a .rlt file: it does not start with RILLET\\r\\n");
  if (size < kHeaderSize) return Refuse(RILLET_TRUNCATED, "the file ends inside its header: got %zu bytes", size);
  const uint32_t version = Read<uint32_t>(bytes, 8);
  if (version != kFormatVersion)
    return Refuse(RILLET_BAD_VERSION, "format version: got %u, expected %u. Use a newer rillet", version,
                  kFormatVersion);
  const uint64_t total = Read<uint64_t>(bytes, 24);
  if (total != size)
    return Refuse(RILLET_TRUNCATED, "file size: got %zu bytes, expected %llu. Copy the file again", size,
                  static_cast<unsigned long long>(total));
  const uint64_t n = Read<uint64_t>(bytes, 16);
  if (n > size || kHeaderSize + PadUp(n) > size)
    return Refuse(RILLET_TRUNCATED, "size of the structure: got %llu bytes in a file of %zu",
                  static_cast<unsigned long long>(n), size);
  for (size_t i = 32; i < kHeaderSize; ++i)
    if (bytes[i]) return Refuse(RILLET_BAD_VERSION, "reserved byte %zu of the header is set. Use a newer rillet", i);
  if (Crc32(bytes + kHeaderSize, n, Crc32(bytes + 16, 16)) != Read<uint32_t>(bytes, 12))
    return Refuse(RILLET_BAD_CHECKSUM, "the structure of the file does not match its checksum. Copy the file again");
  *structure = n;
  return {};
}

// So that a change of any byte of a file is noticed.
Result VerifyPadding(const uint8_t* bytes, uint64_t from, uint64_t to) {
  for (uint64_t i = from; i < to; ++i)
    if (bytes[i])
      return Refuse(RILLET_BAD_CHECKSUM, "byte %llu, which is padding, is not zero",
                    static_cast<unsigned long long>(i));
  return {};
}

// Sections stand in order, apart from each other, and leave kSectionAlignment readable bytes after the last one.
Result VerifySections(const uint8_t* bytes, size_t size, size_t structure, const format::Model& model) {
  uint64_t free_from = kHeaderSize + structure;
  if (!model.sections()) return VerifyPadding(bytes, free_from, size);
  if (!IsAligned(model.sections())) return Refuse(RILLET_MALFORMED, "the list of sections is not aligned");
  for (uint32_t i = 0; i < model.sections()->size(); ++i) {
    const format::Section& s = *model.sections()->Get(i);
    const bool inside =
        s.offset() <= size && s.size() <= size - s.offset() && size - s.offset() - s.size() >= kSectionAlignment;
    if (s.offset() % kSectionAlignment || s.offset() < free_from || !inside)
      return Refuse(RILLET_BAD_REFERENCE, "section %u lies at %llu with %llu bytes, in a file of %zu bytes", i,
                    static_cast<unsigned long long>(s.offset()), static_cast<unsigned long long>(s.size()), size);
    RILLET_TRY(VerifyPadding(bytes, free_from, s.offset()));
    free_from = s.offset() + s.size();
    if (Crc32(bytes + s.offset(), s.size()) != s.crc32())
      return Refuse(RILLET_BAD_CHECKSUM, "section %u does not match its checksum. Copy the file again", i);
  }
  return VerifyPadding(bytes, free_from, size);
}

}  // namespace

Result Verify(const uint8_t* bytes, size_t size, const format::Model** model) {
  size_t structure = 0;
  RILLET_TRY(VerifyHeader(bytes, size, &structure));
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;                                         // the schema nests five deep
  options.max_tables = static_cast<uint32_t>(structure / 8 + 8);  // a table takes eight bytes at least
  options.max_size = structure + 1;
  flatbuffers::Verifier verifier(bytes + kHeaderSize, structure, options);
  if (structure < 8 || !format::VerifyModelBuffer(verifier))
    return Refuse(RILLET_MALFORMED, "the structure of the file is not a valid FlatBuffer of type RLT1");
  const format::Model& m = *format::GetModel(bytes + kHeaderSize);
  RILLET_TRY(VerifySections(bytes, size, structure, m));
  if (m.programs()->size() == 0) return Refuse(RILLET_MALFORMED, "the file holds no program");
  auto numbers = static_cast<int64_t>(structure / 4);
  for (const format::Program* program : *m.programs()) RILLET_TRY(VerifyProgram(m, *program, &numbers));
  RILLET_TRY(VerifyCalls(m));
  *model = &m;
  return {};
}

}  // namespace rillet
