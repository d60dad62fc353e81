// SpaceToDepth, DepthToSpace: one strided copy. SpaceToBatchND, BatchToSpaceND: one for each place in a block.
#include "strided_copy.h"

namespace rillet {
namespace {

// Image [N, P * b, Q * b, C] and blocks [N, P, Q, b, b, C]; `gather`: from the image to the blocks.
Status PlanDepth(Prepare& p, const Tensor& x, const int64_t* image, int64_t b, bool gather, const int64_t* out) {
  if (p.SetOutput(0, x.dtype, 4, out) != Status::kOk) return p.status();
  StridedCopy* copy = p.NewState<StridedCopy>();
  if (!copy) return p.status();
  const int64_t element = static_cast<int64_t>(SizeOf(x.dtype)), c = image[3] * element;
  const int64_t rows = image[1] / b, columns = image[2] / b, line = image[2] * c;
  const int64_t dims[6] = {image[0], rows, columns, b, b, c};
  const int64_t in_image[6] = {image[1] * line, b * line, b * c, line, c, 1};
  const int64_t in_blocks[6] = {rows * columns * b * b * c, columns * b * b * c, b * b * c, b * c, c, 1};
  // The destination's dimensions in its own order: rows and columns of the image interleave those of the blocks.
  constexpr int kImageOrder[6] = {0, 1, 3, 2, 4, 5}, kBlockOrder[6] = {0, 1, 2, 3, 4, 5};
  *copy = StridedCopy(1);
  for (int i = 0; i < 6; ++i) {
    const int d = gather ? kBlockOrder[i] : kImageOrder[i];
    copy->AddDim(dims[d], gather ? in_image[d] : in_blocks[d], gather ? in_blocks[d] : in_image[d]);
  }
  copy->Finish();
  return Status::kOk;
}

Status PrepareDepth(Prepare& p, bool gather) {
  const Tensor& x = p.in(0);
  const int64_t b = p.Int("block_size");
  if (p.status() != Status::kOk) return p.status();
  if (x.rank != 4) return p.Fail("x: got rank %d, expected 4 (NHWC)", x.rank);
  if (b < 1 || b > 65536) return p.Fail("block_size: got %lld, expected 1 or more", static_cast<long long>(b));
  const int64_t* d = x.dims;
  if (gather) {
    if (d[1] % b || d[2] % b)
      return p.Fail("%lld x %lld pixels do not divide into blocks of %lld", static_cast<long long>(d[1]),
                    static_cast<long long>(d[2]), static_cast<long long>(b));
    int64_t out[4] = {d[0], d[1] / b, d[2] / b, 0};
    if (__builtin_mul_overflow(d[3], b * b, &out[3]))
      return p.Fail("block_size: got %lld, too large", static_cast<long long>(b));
    return PlanDepth(p, x, d, b, true, out);
  }
  if (d[3] % (b * b))
    return p.Fail("depth: got %lld, expected a multiple of %lld", static_cast<long long>(d[3]),
                  static_cast<long long>(b * b));
  const int64_t out[4] = {d[0], d[1] * b, d[2] * b, d[3] / (b * b)};
  return PlanDepth(p, x, out, b, false, out);
}

Status PrepareSpaceToDepth(Prepare& p) { return PrepareDepth(p, true); }
Status PrepareDepthToSpace(Prepare& p) { return PrepareDepth(p, false); }

Status RunCopy(const Run& run) {
  run.state<StridedCopy>().Run(run, run.in(0).data, run.out(0).data);
  return Status::kOk;
}

// The image [N, space..., rest] and the batch [blocks * N, space / blocks..., rest] that hold the same elements.
struct BlockState {
  int64_t block[kMaxRank], before[kMaxRank];
  int64_t blocks;  // how many places a block has
  int32_t spatial;
  Element value;
};

// Reads block_shape and the pairs (paddings or crops) into `s`, and the sums of the pairs.
Status ReadBlocks(Prepare& p, const char* pairs_name, BlockState* s, int64_t* sums) {
  const Tensor& x = p.in(0);
  const Span<int64_t> block = p.Ints("block_shape"), pairs = p.Ints(pairs_name);
  if (p.status() != Status::kOk) return p.status();
  if (block.size < 1 || block.size >= x.rank || pairs.size != 2 * block.size)
    return p.Fail("block_shape and %s: expected one each for 1 to %d dimensions", pairs_name, x.rank - 1);
  constexpr int64_t kMost = int64_t{1} << 31;
  s->blocks = 1;
  s->spatial = static_cast<int32_t>(block.size);
  for (int i = 0; i < s->spatial; ++i) {
    const int64_t before = pairs[2 * i], after = pairs[2 * i + 1];
    if (block[i] < 1 || block[i] > kMost || before < 0 || after < 0 || before > kMost || after > kMost)
      return p.Fail("dimension %d: expected a block of 1 or more and %s of 0 or more", i + 1, pairs_name);
    if (__builtin_mul_overflow(s->blocks, block[i], &s->blocks)) return p.Fail("block_shape: too large");
    s->block[i] = block[i];
    s->before[i] = before;
    sums[i] = before + after;
  }
  return Status::kOk;
}

Status PrepareSpaceToBatch(Prepare& p) {
  const Tensor& x = p.in(0);
  BlockState* s = p.NewState<BlockState>();
  int64_t sums[kMaxRank], dims[kMaxRank];
  if (!s || ReadBlocks(p, "paddings", s, sums) != Status::kOk) return p.status();
  s->value = MakeElement(x.dtype, x.quant, p.Float("value"));
  if (p.status() != Status::kOk) return p.status();
  for (int i = 0; i < x.rank; ++i) dims[i] = x.dims[i];
  if (__builtin_mul_overflow(x.dims[0], s->blocks, &dims[0])) return p.Fail("block_shape: too large");
  for (int i = 0; i < s->spatial; ++i) {
    const int64_t padded = x.dims[i + 1] + sums[i];
    if (padded % s->block[i])
      return p.Fail("dimension %d with its padding: got %lld, expected a multiple of %lld", i + 1,
                    static_cast<long long>(padded), static_cast<long long>(s->block[i]));
    dims[i + 1] = padded / s->block[i];
  }
  return p.SetOutput(0, x.dtype, x.rank, dims);
}

Status PrepareBatchToSpace(Prepare& p) {
  const Tensor& x = p.in(0);
  BlockState* s = p.NewState<BlockState>();
  int64_t sums[kMaxRank], dims[kMaxRank];
  if (!s || ReadBlocks(p, "crops", s, sums) != Status::kOk) return p.status();
  for (int i = 0; i < x.rank; ++i) dims[i] = x.dims[i];
  if (x.dims[0] % s->blocks)
    return p.Fail("batch: got %lld, expected a multiple of %lld", static_cast<long long>(x.dims[0]),
                  static_cast<long long>(s->blocks));
  dims[0] = x.dims[0] / s->blocks;
  for (int i = 0; i < s->spatial; ++i)
    if (__builtin_mul_overflow(x.dims[i + 1], s->block[i], &dims[i + 1]) || (dims[i + 1] -= sums[i]) < 0)
      return p.Fail("crops of dimension %d are larger than the image", i + 1);
  return p.SetOutput(0, x.dtype, x.rank, dims);
}

// Copies the elements of one place in the blocks. `into_batch`: from the image to the batch, else back.
void CopyPlace(const Run& run, const BlockState& s, int64_t place, const Tensor& image, const Tensor& batch,
               bool into_batch) {
  const Strides in_image(image), in_batch(batch);
  StridedCopy copy(SizeOf(image.dtype));
  auto add = [&](int64_t size, int64_t image_stride, int64_t batch_stride) {
    copy.AddDim(size, into_batch ? image_stride : batch_stride, into_batch ? batch_stride : image_stride);
  };
  int64_t image_offset = 0, batch_offset = place * image.dims[0] * in_batch[0], offsets[kMaxRank];
  for (int i = s.spatial - 1; i >= 0; --i) {
    offsets[i] = place % s.block[i];
    place /= s.block[i];
  }
  add(image.dims[0], in_image[0], in_batch[0]);
  for (int i = 0; i < s.spatial; ++i) {
    // Element q of the batch stands at q * block + offset - before of the image: the q for which that is inside.
    const int64_t shift = s.before[i] - offsets[i], block = s.block[i], size = image.dims[i + 1];
    const int64_t first = shift > 0 ? (shift + block - 1) / block : 0;
    const int64_t past = size + shift > 0 ? (size + shift - 1) / block + 1 : 0;
    add(past > first ? past - first : 0, block * in_image[i + 1], in_batch[i + 1]);
    image_offset += (first * block - shift) * in_image[i + 1];
    batch_offset += first * in_batch[i + 1];
  }
  for (int i = s.spatial + 1; i < image.rank; ++i) add(image.dims[i], in_image[i], in_batch[i]);
  copy.Finish(into_batch ? image_offset : batch_offset, into_batch ? batch_offset : image_offset);
  copy.Run(run, into_batch ? image.data : batch.data, into_batch ? batch.data : image.data);
}

Status RunSpaceToBatch(const Run& run) {
  const BlockState& s = run.state<BlockState>();
  const Tensor& y = run.out(0);
  FillElements(run, y.data, y.size(), SizeOf(y.dtype), s.value.bytes);
  if (y.size() == 0) return Status::kOk;
  for (int64_t place = 0; place < s.blocks; ++place) CopyPlace(run, s, place, run.in(0), y, true);
  return Status::kOk;
}

Status RunBatchToSpace(const Run& run) {
  const BlockState& s = run.state<BlockState>();
  if (run.out(0).size() == 0) return Status::kOk;
  for (int64_t place = 0; place < s.blocks; ++place) CopyPlace(run, s, place, run.out(0), run.in(0), false);
  return Status::kOk;
}

}  // namespace

const Kernel space_to_depth_any = {PrepareSpaceToDepth, RunCopy};
const Kernel depth_to_space_any = {PrepareDepthToSpace, RunCopy};
const Kernel space_to_batch_nd_any = {PrepareSpaceToBatch, RunSpaceToBatch};
const Kernel batch_to_space_nd_any = {PrepareBatchToSpace, RunBatchToSpace};

}  // namespace rillet
