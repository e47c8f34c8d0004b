// The files in data/ are made by make_files.py.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/support/source_path.h>

namespace treadle::idx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Purpose = OpenRequest::Purpose;

fs::path made(const std::string& name) {
  return testing::source_path(TREADLE_TEST_DATA) / name;
}

std::unique_ptr<DataProvider> make(const Json& parameters) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<DataProvider>("idx", parameters);
}

std::unique_ptr<DataProvider> open(const Json& parameters, const OpenRequest& request = {}) {
  auto data = make(parameters);
  data->open(request);
  return data;
}

std::unique_ptr<DataProvider> open_later(Purpose purpose, const DataProvider& training,
                                         const Json& parameters) {
  auto data = make(parameters);
  data->load_state(training.state().snapshot());
  OpenRequest request;
  request.purpose = purpose;
  data->open(request);
  return data;
}

Json small() {
  return {{"path", made("small-images-idx3-ubyte.gz").string()}};
}

Batch everything(const DataProvider& data) {
  const RowReader& rows = *data.ask<RowReader>();
  return testing::gathered(rows, 0, rows.rows());
}

std::vector<double> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  const double* const first = flat.data_ptr<double>();
  return {first, first + flat.numel()};
}

class IdxFiles : public ::testing::Test {
 protected:
  fs::path file(std::string_view name) const { return folder_.path() / name; }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
  }
  static std::string content_of(const std::string& name) {
    std::ifstream stream(made(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static std::string compressed(std::string_view bytes) {
    std::string out(bytes.size() + 1000, '\0');
    z_stream stream = {};
    ::deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    ::deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    ::deflateEnd(&stream);
    return out;
  }
  /// With small labels beside it.
  std::string error(const Json& more = Json::object()) const {
    Json parameters = {{"path", file("x").string()},
                       {"labels", made("small-labels-idx1-ubyte.gz").string()}};
    parameters.update(more);
    try {
      open(parameters);
    } catch (const DataError& error) {
      std::string text = error.what();
      const std::string prefix = folder_.path().string() + "/";
      for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
        text.erase(at, prefix.size());
      return text;
    }
    return "no error";
  }

 private:
  testing::ScratchFolder folder_;
};

TEST_F(IdxFiles, AreImagesOfBytesWithTheirLabelsBesideThem) {
  const auto data = open(small());

  const Batch all = everything(*data);
  EXPECT_EQ(data->spec().inputs.at(0).role, Role::kImage);
  EXPECT_EQ(all.inputs[0].scalar_type(), at::kByte);
  EXPECT_EQ(all.inputs[0].sizes(), (std::vector<std::int64_t>{6, 1, 4, 5}));
  EXPECT_EQ(all.inputs[0][1][0][2][3].item<int>(), 2 * (20 + 13));
  EXPECT_EQ(data->spec().targets.at(0).class_names, (std::vector<std::string>{"3", "7", "9"}));
  EXPECT_EQ(values(all.targets[0]), (std::vector<double>{1, 0, 1, 2, 0, 0}));
}

TEST_F(IdxFiles, HaveEveryTypeOfTheFormat) {
  for (const auto& [name, dtype, first, step] :
       {std::tuple{"uint8", at::kFloat, 0.0, 1.0}, std::tuple{"int8", at::kFloat, -2.0, 1.0},
        std::tuple{"int16", at::kFloat, -2.0, 1.0}, std::tuple{"int32", at::kDouble, -2.0, 1.0},
        std::tuple{"float32", at::kFloat, -1.0, 0.5},
        std::tuple{"float64", at::kDouble, -1.0, 0.5}}) {
    SCOPED_TRACE(name);
    const auto data = open({{"path", made(std::string(name) + ".idx").string()},
                            {"labels", made("small-labels-idx1-ubyte.gz").string()}});
    std::vector<double> expected;
    for (int i = 0; i < 18; ++i)
      expected.push_back(first + i * step);

    const Batch all = everything(*data);

    EXPECT_EQ(all.inputs[0].scalar_type(), dtype);
    EXPECT_EQ(values(all.inputs[0]), expected);
    EXPECT_EQ(data->spec().inputs[0].columns.at(2).name, "x2");
  }
}

TEST_F(IdxFiles, HaveNumbersOrClassesAtPositionsAsLabels) {
  Json parameters = small();
  parameters["labels"] = made("float32.idx").string();
  EXPECT_EQ(open(parameters)->spec().targets.at(0).shape, std::vector<std::int64_t>{3});
  parameters["labels"] = made("positions.idx").string();
  OpenRequest request;
  request.target_kinds["label"] = {TargetKind::kClasses};

  const auto data = open(parameters, request);

  EXPECT_EQ(data->spec().targets.at(0).shape, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(values(everything(*data).targets[0][0]).at(4), 1);
}

TEST_F(IdxFiles, AreEvaluatedWithTheLabelsBesideThem) {
  const auto training = open(small());
  write("other-images-idx3-ubyte",
        std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x04\0\0\0\x05", 16) + std::string(40, '\x05'));
  write("other-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x02\x09\x03", 10));
  const Json other = {{"path", file("other-images-idx3-ubyte").string()}};

  const auto later = open_later(Purpose::kEvaluate, *training, other);

  EXPECT_EQ(values(everything(*later).targets[0]), (std::vector<double>{2, 0}));
  EXPECT_TRUE(open_later(Purpose::kPredict, *training, other)->spec().targets.empty());
  write("other-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x02\x08\x03", 10));
  EXPECT_THROW(open_later(Purpose::kEvaluate, *training, other), DataError);
}

TEST_F(IdxFiles, HaveAnotherHashWhenAByteChanges) {
  std::string bytes = content_of("colors-images-idx4-ubyte");
  write("x", bytes);
  const Json parameters = {{"path", file("x").string()},
                           {"labels", made("small-labels-idx1-ubyte.gz").string()}};
  const auto before = open(parameters);
  EXPECT_EQ(before->spec().inputs.at(0).shape, (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(before->content_hash(), open(parameters)->content_hash());
  bytes.back() ^= 1;
  write("x", bytes);

  EXPECT_NE(before->content_hash(), open(parameters)->content_hash());
  EXPECT_NE(before->ask<SourceHash>()->source_hash(),
            open(parameters)->ask<SourceHash>()->source_hash());
}

TEST_F(IdxFiles, SayWhatIsWrongWithThem) {
  EXPECT_EQ(error(), "x: no such file");
  write("x", "\0\0");
  EXPECT_EQ(error(), "x: is no IDX file: it has fewer than 4 bytes");
  write("x", "path,label\n");
  EXPECT_EQ(error(),
            "x: is no IDX file, plain or compressed by gzip: it does not begin with two zeros and "
            "the type of its numbers");
  write("x", std::string("\0\0\x08\0", 4));
  EXPECT_EQ(error(), "x: has no dimensions, and the first one is the row");
  write("x", std::string("\0\0\x08\x02\0\0\0\x02", 8));
  EXPECT_EQ(error(), "x: is truncated: its header should have 2 dimensions");
  write("x", std::string("\0\0\x08\x01\0\0\0\x06\1\2\3\4", 12));
  EXPECT_EQ(error(), "x: is truncated: expected 6 bytes for the shape (6) of uint8, got 4");
  write("x", std::string("\0\0\x08\x01\0\0\0\x02\1\2\3\4", 12));
  EXPECT_EQ(error(), "x: has more bytes than its shape takes");
  write("x", std::string("\0\0\x0E\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 16));
  EXPECT_EQ(error(),
            "x: has the shape (4294967295, 4294967295, 4294967295) of float64, which is more than "
            "\"max_bytes\" allows, 4294967296 bytes");
  write("x", std::string("\0\0\x0D\x01\0\0\0\x01\x7F\xC0\0\0", 12));
  EXPECT_EQ(error(), "x: row 0: got NaN, expected finite numbers");
  write("x", std::string("\0\0\x08\x01\0\0\0\x02\1\2", 10));
  EXPECT_NE(error().find("has 6 rows, but x has 2"), std::string::npos) << error();
}

TEST_F(IdxFiles, ThatAreCompressedAndDamagedOrCutAreRefused) {
  const std::string whole = content_of("small-images-idx3-ubyte.gz");
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  write("x", damaged);
  EXPECT_EQ(error(), "x: is damaged: incorrect data check");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write("x", std::string_view(whole).substr(0, size));
    EXPECT_NE(error(), "no error") << size;
  }
}

// 64 MiB of zeros in 64 kB: refused before they are taken.
TEST_F(IdxFiles, ThatAreBombsAreRefusedByTheirHeader) {
  write("x", compressed(std::string("\0\0\x08\x01\x04\0\0\0", 8) + std::string(1 << 26, '\0')));
  EXPECT_EQ(
      error({{"max_bytes", 1 << 20}}),
      "x: has the shape (67108864) of uint8, which is more than \"max_bytes\" allows, 1048576 "
      "bytes");
}

// The first digits of the test set are 7, 2, 1, 0, 4, 1, 4, 9, 5, 9, and 1135 of the 10 000 are 1
// (LeCun's page, and every tutorial since).
TEST_F(IdxFiles, AreMnistsOwn) {
  const char* const data_sets = std::getenv("TREADLE_DATA");
  const fs::path file =
      fs::path(data_sets != nullptr ? data_sets : "") / "mnist/t10k-images-idx3-ubyte.gz";
  if (!fs::exists(file))
    GTEST_SKIP() << "needs " << file << ", which is absent";

  const auto data = open({{"path", file.string()}});

  EXPECT_EQ(data->spec().inputs.at(0).shape, (std::vector<std::int64_t>{1, 28, 28}));
  const std::vector<double> labels = values(data->ask<RowReader>()->targets());
  ASSERT_EQ(labels.size(), 10000U);
  EXPECT_EQ(std::vector<double>(labels.begin(), labels.begin() + 10),
            (std::vector<double>{7, 2, 1, 0, 4, 1, 4, 9, 5, 9}));
  EXPECT_EQ(std::count(labels.begin(), labels.end(), 1.0), 1135);
}

}  // namespace
}  // namespace treadle::idx

namespace treadle::testing {
namespace {

DataCase idx_case(std::string name, const std::string& inputs, const std::string& labels) {
  return {std::move(name), [=] {
            return idx::make(
                {{"path", idx::made(inputs).string()}, {"labels", idx::made(labels).string()}});
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Idx, DataContract,
    ::testing::Values(idx_case("Images", "small-images-idx3-ubyte.gz",
                               "small-labels-idx1-ubyte.gz"),
                      idx_case("Colors", "colors-images-idx4-ubyte", "float32.idx"),
                      idx_case("Table", "float64.idx", "small-labels-idx1-ubyte.gz")),
    CaseName());

}  // namespace
}  // namespace treadle::testing
