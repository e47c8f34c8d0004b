#include "npy_data.h"

#include <filesystem>
#include <optional>

#include <gmock/gmock.h>

#include <treadle/testing/support/source_path.h>

#include "array_fixture.h"

namespace treadle::arrays {
namespace {

using ::testing::ElementsAre;

class NpyDataTest : public ArrayFixture {
 protected:
  static std::vector<std::string> names(const DataProvider& data, std::size_t port = 0) {
    std::vector<std::string> names;
    for (const Column& column : data.spec().inputs[port].columns)
      names.push_back(column.name);
    return names;
  }
  static std::string made_by_numpy(const char* name) {
    return testing::source_path(TREADLE_TEST_DATA) / name;
  }
};

// The files in test/data, with NumPy 1.24.2:
//   r = numpy.random.RandomState(1)
//   numpy.save('table.npy', r.randn(6, 3))
//   numpy.save('labels.npy', numpy.array([3, 5, 3, 7, 5, 3], dtype='int32'))
//   with open('digits.npy', 'wb') as f:
//       numpy.lib.format.write_array(f, r.randint(0, 256, (6, 1, 2, 3)).astype('uint8'),
//                                    version=(3, 0))
TEST_F(NpyDataTest, ReadsWhatNumpyWrote) {
  const auto table =
      open({{"inputs", made_by_numpy("table.npy")}, {"target", made_by_numpy("labels.npy")}}, {});
  const auto images =
      open({{"inputs", made_by_numpy("digits.npy")}, {"target", made_by_numpy("table.npy")}});

  // numpy.load('table.npy')[[0, 5]].tolist(), numpy.load('digits.npy')[[1, 5]].tolist()
  EXPECT_EQ(values(batch(*table).inputs[0][0]),
            (std::vector<double>{1.6243453636632417, -0.6117564136500754, -0.5281717522634557}));
  EXPECT_EQ(values(batch(*table).inputs[0][5]),
            (std::vector<double>{-1.0998912673140309, -0.17242820755043575, -0.8778584179213718}));
  EXPECT_THAT(targets(*table), ElementsAre(0, 1, 0, 2, 1, 0));
  EXPECT_THAT(table->spec().targets[0].class_names, ElementsAre("3", "5", "7"));
  EXPECT_EQ(table->spec().targets[0].name, "labels");
  EXPECT_THAT(values(batch(*images).inputs[0][1]), ElementsAre(241, 43, 76, 26, 52, 80));
  EXPECT_THAT(values(batch(*images).inputs[0][5]), ElementsAre(231, 126, 23, 125, 100, 155));
  EXPECT_EQ(images->spec().inputs[0].shape, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_THAT(values(batch(*images).targets[0][0]),
              ElementsAre(1.6243453636632417, -0.6117564136500754, -0.5281717522634557));
}

TEST_F(NpyDataTest, ReadsEachTypeInEachFormatVersionTheSameWayWithEachAccess) {
  write<float>("y.npy", {2}, {0, 1});
  const std::vector<std::int64_t> shape = {2, 2};
  write<float>("f4.npy", shape, {1.5F, -2, 3, 0.25F}, 1);
  write<double>("f8.npy", shape, {1.1, -2, 3, 1e300}, 2);
  write<std::int64_t>("i8.npy", shape, {-1, 16777217, 3, 4}, 3);
  write<std::int32_t>("i4.npy", shape, {-1, 2, 3, 4}, 1);
  write<std::uint8_t>("u1.npy", shape, {0, 2, 3, 255}, 2);

  for (const char* access : {"memory", "mapped", "chunked"}) {
    const auto read = [&](const char* name, const OpenRequest& request) {
      return features(*open({{"inputs", path(name)}, {"access", access}}, request));
    };
    EXPECT_THAT(read("f4.npy", {}), ElementsAre(1.5, -2, 3, 0.25)) << access;
    EXPECT_THAT(read("f8.npy", {}), ElementsAre(1.1, -2, 3, 1e300)) << access;
    // 2^24 + 1 is no float32.
    EXPECT_THAT(read("i8.npy", {}), ElementsAre(-1, 16777217, 3, 4)) << access;
    EXPECT_THAT(read("i4.npy", {}), ElementsAre(-1, 2, 3, 4)) << access;
    EXPECT_THAT(read("u1.npy", {}), ElementsAre(0, 2, 3, 255)) << access;
  }
}

TEST_F(NpyDataTest, ImagesOfBytesStayBytesWithEachAccess) {
  write<float>("y.npy", {2}, {0, 1});
  write<std::uint8_t>("x.npy", {2, 1, 1, 3}, {0, 128, 255, 7, 8, 9});
  write<float>("floats.npy", {2, 1, 1, 3}, {0, 0.5, 255, 7, 8, 9});
  for (const char* access : {"memory", "mapped", "chunked"}) {
    const auto bytes = open({{"access", access}});

    EXPECT_EQ(bytes->spec().inputs[0].dtype, at::kByte) << access;
    EXPECT_EQ(batch(*bytes).inputs[0].scalar_type(), at::kByte) << access;
    EXPECT_THAT(values(batch(*bytes).inputs[0][1]), ElementsAre(7, 8, 9)) << access;

    // The file that is read later decides anew: its numbers need not be whole.
    const auto later =
        open_later(Purpose::kPredict, *bytes, {{"inputs", path("floats.npy")}, {"access", access}});
    EXPECT_EQ(later->spec().inputs[0].dtype, at::kFloat) << access;
    EXPECT_THAT(values(batch(*later).inputs[0][0]), ElementsAre(0, 0.5, 255)) << access;
  }
}

TEST_F(NpyDataTest, ReadsAnArrayThatDoesNotBeginOnABoundary) {
  // 10 + 61 bytes of header: an odd number, which NumPy before 1.14 wrote too.
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,  1), }\n";
  const float numbers[] = {1.5F, 2.5F};
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0';
  bytes += header + std::string(reinterpret_cast<const char*>(numbers), sizeof numbers);
  ASSERT_EQ(header.size() % 2, 1U);
  write_bytes("x.npy", bytes);
  write<float>("y.npy", {2}, {0, 1});

  for (const char* access : {"memory", "mapped", "chunked"})
    EXPECT_THAT(features(*open({{"access", access}})), ElementsAre(1.5, 2.5)) << access;
}

TEST_F(NpyDataTest, ReadsTheHeadersOfOldPythons) {
  const float numbers[] = {1, 2};
  write_bytes("x.npy", npy_bytes("{\"shape\": (2L,), 'fortran_order': True, 'descr': '<f4'}",
                                 {reinterpret_cast<const char*>(numbers), sizeof numbers}));
  write<float>("y.npy", {2}, {0, 1});

  EXPECT_THAT(features(*open()), ElementsAre(1, 2));
}

TEST_F(NpyDataTest, OneNumberPerRowIsATableOfOneColumn) {
  write<float>("x.npy", {3}, {1, 2, 3});
  write<float>("y.npy", {3, 1}, {4, 5, 6});

  const auto data = open();

  EXPECT_EQ(data->spec().inputs[0].shape, std::vector<std::int64_t>{1});
  EXPECT_THAT(names(*data), ElementsAre("x0"));
  EXPECT_THAT(features(*data), ElementsAre(1, 2, 3));
  EXPECT_THAT(targets(*data), ElementsAre(4, 5, 6));
  EXPECT_EQ(data->spec().targets[0], number_target("y"));
}

TEST_F(NpyDataTest, InputsAndColumnsHaveTheNamesTheyAreGiven) {
  write_five();
  write_table<std::uint8_t>("z.npy", 5, 2);
  const Json two = {{"left", path("x.npy")}, {"right", path("z.npy")}};

  const auto plain = open();
  const auto named = open({{"columns", {"a", "b", "c"}}});
  const auto ports = open({{"inputs", two}});
  const auto both = open({{"inputs", two}, {"columns", {{"right", {"r", "s"}}}}});

  EXPECT_EQ(plain->spec().inputs[0].name, "features");
  EXPECT_THAT(names(*plain), ElementsAre("x0", "x1", "x2"));
  EXPECT_THAT(names(*named), ElementsAre("a", "b", "c"));
  EXPECT_EQ(ports->spec().inputs[1].name, "right");
  EXPECT_THAT(names(*ports, 0), ElementsAre("left.x0", "left.x1", "left.x2"));
  EXPECT_THAT(names(*both, 1), ElementsAre("r", "s"));
  EXPECT_THAT(values(batch(*both).inputs[1][2]), ElementsAre(200, 201));
}

TEST_F(NpyDataTest, TheTaskDecidesThenTheLossThenTheTypeWhetherTargetsAreClasses) {
  write_table("x.npy", 4);
  write<std::int64_t>("i.npy", {4}, {-1, 1, 1, -1});
  write<float>("f.npy", {4}, {2, 1, 1, 2});
  const auto kind = [&](const char* target, Task task, std::optional<TargetKind> loss) {
    OpenRequest request;
    request.task = task;
    if (loss)
      request.target_kinds[""] = {*loss};
    return open({{"target", path(target)}}, request)->spec().targets[0].kind;
  };

  EXPECT_EQ(kind("i.npy", Task::kAuto, std::nullopt), TargetKind::kClasses);
  EXPECT_EQ(kind("f.npy", Task::kAuto, std::nullopt), TargetKind::kNumbers);
  EXPECT_EQ(kind("i.npy", Task::kAuto, TargetKind::kNumbers), TargetKind::kNumbers);
  EXPECT_EQ(kind("f.npy", Task::kAuto, TargetKind::kClasses), TargetKind::kClasses);
  EXPECT_EQ(kind("i.npy", Task::kRegression, TargetKind::kClasses), TargetKind::kNumbers);
  EXPECT_EQ(kind("f.npy", Task::kClassification, TargetKind::kNumbers), TargetKind::kClasses);
  EXPECT_THAT(targets(*open({{"target", path("i.npy")}})), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(open({{"target", path("i.npy")}})->spec().targets[0].class_names,
              ElementsAre("-1", "1"));
}

TEST_F(NpyDataTest, ClassesHaveTheNamesTheyAreGivenAlsoThoseWithoutRows) {
  write_table("x.npy", 3);
  write<std::uint8_t>("y.npy", {3}, {2, 0, 2});

  const auto data = open({{"classes", {"cat", "dog", "fox"}}});

  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("cat", "dog", "fox"));
  EXPECT_THAT(targets(*data), ElementsAre(2, 0, 2));
}

TEST_F(NpyDataTest, WeightsGroupsAndTimesBelongToRows) {
  write_five();
  write<double>("w.npy", {5}, {1, 0, 2.5, 1, 1});
  write<std::int64_t>("g.npy", {5, 1}, {7, 7, 9007199254740993, -1, 7});
  write<std::int32_t>("t.npy", {5}, {5, 4, 3, 2, 1});

  const auto data =
      open({{"weights", path("w.npy")}, {"groups", path("g.npy")}, {"times", path("t.npy")}});

  EXPECT_TRUE(data->spec().has_weights);
  EXPECT_THAT(values(batch(*data).weights), ElementsAre(1, 0, 2.5, 1, 1));
  EXPECT_EQ(rows(*data).groups()[2].item<std::int64_t>(), 9007199254740993);
  EXPECT_THAT(values(rows(*data).timestamps()), ElementsAre(5, 4, 3, 2, 1));
}

TEST_F(NpyDataTest, FilesFollowEachOtherAndThoseWithoutRowsArePassedOver) {
  write_table("part-a.npy", 2);
  write<float>("part-b.npy", {0, 3}, {});
  write_table("part-c.npy", 3, 3, 2);
  write<double>("part-d.npy", {0}, {});  // numpy.save(path, [])
  write_table("whole.npy", 5);
  write<float>("y.npy", {5}, {0, 1, 2, 3, 4});
  const Json list = {path("part-a.npy"), path("part-b.npy"), path("part-c.npy"),
                     path("part-d.npy")};

  for (const char* access : {"memory", "mapped", "chunked"}) {
    const auto whole = open({{"inputs", path("whole.npy")}, {"access", access}});
    for (const Json& inputs : {list, Json(path("part-?.npy")), Json(path("p*.npy"))}) {
      const auto parts = open({{"inputs", inputs}, {"access", access}, {"chunk_rows", 2}});

      EXPECT_EQ(features(*parts), features(*whole)) << access;
      EXPECT_EQ(parts->content_hash(), whole->content_hash());
      EXPECT_EQ(rows(*parts).describe_row(1), "row 1 of " + path("part-a.npy"));
      EXPECT_EQ(rows(*parts).describe_row(2), "row 0 of " + path("part-c.npy"));
    }
  }
}

TEST_F(NpyDataTest, ANameThatIsThereIsNoPattern) {
  write_table("x*.npy", 5);
  write_table("x1.npy", 5, 2);
  write<float>("y.npy", {5}, {0, 1, 2, 3, 4});

  EXPECT_EQ(open({{"inputs", path("x*.npy")}})->spec().inputs[0].shape,
            std::vector<std::int64_t>{3});
}

TEST_F(NpyDataTest, AWalkOverAnArraySaysWhenItHasEndedAndWhatItSkipped) {
  write<float>("a.npy", {0, 3}, {});
  write_table("b.npy", 3);
  write<float>("c.npy", {0, 3}, {});
  write_table("d.npy", 1, 3, 3);
  const ArrayFiles array({file("a.npy"), file("b.npy"), file("c.npy"), file("d.npy")});
  PieceWalk walk(array, 2);
  std::vector<Found> found;
  std::vector<std::int64_t> pieces;

  for (int i = 0; i < 8; ++i) {
    found.push_back(walk.next());
    if (found.back() == Found::kPiece)
      pieces.insert(pieces.end(), {walk.first_row(), walk.rows()});
  }

  EXPECT_THAT(found, ElementsAre(Found::kSkipped, Found::kPiece, Found::kPiece, Found::kSkipped,
                                 Found::kPiece, Found::kEnd, Found::kEnd, Found::kEnd));
  EXPECT_THAT(pieces, ElementsAre(0, 2, 2, 1, 3, 1));
}

TEST_F(NpyDataTest, AWalkThatFailedFailsTheSameWayAgain) {
  write_table("x.npy", 4);
  const ArrayFiles array({file("x.npy")});
  PieceWalk walk(array, 2);
  ASSERT_EQ(walk.next(), Found::kPiece);
  std::filesystem::remove(file("x.npy"));

  const std::string first = message_of([&] { walk.next(); });
  write_table("x.npy", 4);

  EXPECT_EQ(first, "x.npy: rows 2 to 3: no such file");
  EXPECT_EQ(message_of([&] { walk.next(); }), first);
}

TEST_F(NpyDataTest, MissingValuesArePassedOnOrDropTheirRow) {
  write<double>("x.npy", {4, 2}, {1, kNan, 3, 4, 5, 6, 7, 8});
  write<double>("y.npy", {4}, {0, 1, kNan, 3});
  write<double>("z.npy", {4}, {0, 1, 2, 3});
  write<float>("w.npy", {4}, {1, 2, 3, 4});

  for (const char* access : {"memory", "mapped", "chunked"}) {
    const auto passed = open({{"missing", "nan"}, {"target", path("z.npy")}, {"access", access}});
    const auto dropped =
        open({{"missing", "drop_row"}, {"weights", path("w.npy")}, {"access", access}});

    EXPECT_TRUE(passed->spec().inputs[0].columns[1].may_be_missing);
    EXPECT_FALSE(passed->spec().inputs[0].columns[0].may_be_missing);
    EXPECT_TRUE(std::isnan(features(*passed)[1]));
    EXPECT_EQ(rows(*dropped).rows(), 2);
    EXPECT_THAT(features(*dropped), ElementsAre(3, 4, 7, 8));
    EXPECT_THAT(targets(*dropped), ElementsAre(1, 3));
    EXPECT_THAT(values(batch(*dropped).weights), ElementsAre(2, 4));
    EXPECT_EQ(rows(*dropped).describe_row(1), "row 3 of " + path("x.npy"));
    EXPECT_FALSE(dropped->spec().inputs[0].columns[1].may_be_missing);
  }
}

TEST_F(NpyDataTest, ARowThatIsDroppedMakesNoClass) {
  write<double>("x.npy", {4}, {1, kNan, 3, 4});
  write<std::int64_t>("y.npy", {4}, {0, 99, 1, 0});

  EXPECT_THAT(open({{"missing", "drop_row"}})->spec().targets[0].class_names,
              ElementsAre("0", "1"));
}

TEST_F(NpyDataTest, TheHashIsOverEveryByteWhateverTheAccessAndTheTypeOfTheRun) {
  write_five();
  const std::string hash = open()->content_hash();

  for (const char* access : {"memory", "mapped", "chunked"})
    EXPECT_EQ(open({{"access", access}})->content_hash(), hash) << access;
  write<float>("y.npy", {5}, {0, 10, 20, 30, 41});
  EXPECT_NE(open()->content_hash(), hash);
  write_five();
  EXPECT_EQ(open()->content_hash(), hash);
  write<double>("y.npy", {5}, {0, 10, 20, 30, 40});
  EXPECT_NE(open()->content_hash(), hash);
}

/// Four texts of 3, 1, 0 and 2 tokens in rows of 5, with padding that means nothing; a class for
/// each token, two numbers for each, a class for each text, a mask and the segments.
class NpyTextTest : public NpyDataTest {
 protected:
  NpyTextTest() {
    write<std::int32_t>("x.npy", {4, 5},
                        {4, 2, 7, 99, 99, 3, -1, -1, -1, -1, 9, 9, 9, 9, 9, 1, 2, 50, 50, 50});
    write<std::int64_t>("len.npy", {4}, {3, 1, 0, 2});
    write<std::int64_t>("tags.npy", {4, 5},
                        {5, 8, 5, -100, -100, 8, 0, 0, 0, 0, 1, 1, 1, 1, 1, 8, 5, 2, 2, 2});
    std::vector<double> both;
    for (int i = 0; i < 40; ++i)
      both.push_back(i % 10 < 6 ? i : kNan);
    both[16] = both[17] = kNan;
    write<double>("both.npy", {4, 5, 2}, both);
    write<std::uint8_t>("kind.npy", {4}, {0, 1, 0, 1});
    write<std::uint8_t>("mask.npy", {4, 5},
                        {1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1});
    write<std::int64_t>("seg.npy", {4, 5},
                        {0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  }

  Json parameters(const char* access = "mapped") const {
    return {
        {"inputs",
         {{"mask", {{"path", path("mask.npy")}, {"role", "mask"}}},
          {"seg", {{"path", path("seg.npy")}, {"role", "segments"}, {"of", "text"}}},
          {"text", {{"path", path("x.npy")}, {"role", "tokens"}, {"lengths", path("len.npy")}}}}},
        {"target",
         {{"both", {{"path", path("both.npy")}, {"padded_like", "text"}}},
          {"kind", {{"path", path("kind.npy")}, {"classes", {"no", "yes"}}}},
          {"tags", {{"path", path("tags.npy")}, {"kind", "classes"}, {"padded_like", "text"}}}}},
        {"access", access},
        {"chunk_rows", 2}};
  }
  static at::Tensor input(const DataProvider& data, const Batch& batch, const char* name) {
    return batch.inputs[data.spec().input_index(name)];
  }
};

TEST_F(NpyTextTest, TokensMasksSegmentsAndTheirTargetsAreTrimmedToTheLongestText) {
  for (const char* access : {"memory", "mapped", "chunked"}) {
    SCOPED_TRACE(access);
    const auto data = open(parameters(access));
    const DataSpec& spec = data->spec();
    const PortSpec& text = spec.inputs[spec.input_index("text")];
    EXPECT_EQ(text, (PortSpec{"text", {kVaries}, {}, Role::kTokens, at::kLong, 8}));
    EXPECT_EQ(spec.inputs[spec.input_index("text.lengths")],
              (PortSpec{"text.lengths", {}, {}, Role::kLengths, at::kLong, 0, "text"}));
    EXPECT_EQ(spec.inputs[spec.input_index("mask")],
              (PortSpec{"mask", {kVaries}, {}, Role::kMask, at::kBool, 0, "text"}));
    EXPECT_EQ(spec.targets[spec.target_index("tags")],
              (TargetSpec{"tags", TargetKind::kClasses, {kVaries}, {"5", "8"}, "text"}));
    EXPECT_EQ(spec.targets[spec.target_index("both")],
              (TargetSpec{"both", TargetKind::kNumbers, {kVaries, 2}, {}, "text"}));

    const Batch all = batch(*data);
    EXPECT_THAT(values(input(*data, all, "text")), ElementsAre(4, 2, 7, 3, 0, 0, 0, 0, 0, 1, 2, 0));
    EXPECT_THAT(values(input(*data, all, "text.lengths")), ElementsAre(3, 1, 0, 2));
    EXPECT_THAT(values(input(*data, all, "mask")), ElementsAre(1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0));
    EXPECT_THAT(values(input(*data, all, "seg")), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0));
    const std::size_t tags = spec.target_index("tags");
    const std::size_t both = spec.target_index("both");
    const std::size_t kind = spec.target_index("kind");
    EXPECT_THAT(values(all.targets[tags]), ElementsAre(0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0));
    EXPECT_THAT(values(all.position_weights[tags]),
                ElementsAre(1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0));
    EXPECT_TRUE(testing::same(all.position_weights[both], all.position_weights[tags]));
    EXPECT_FALSE(all.position_weights[kind].defined());
    EXPECT_THAT(values(all.targets[both][0]), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(values(all.targets[both][1]), ElementsAre(10, 11, 0, 0, 0, 0));
    EXPECT_THAT(values(rows(*data).lengths(spec.input_index("text"))), ElementsAre(3, 1, 0, 2));

    const Batch two = testing::gathered(rows(*data), 1, 3);
    EXPECT_EQ(input(*data, two, "text").sizes(), (std::vector<std::int64_t>{2, 1}));
    EXPECT_THAT(values(two.targets[both]), ElementsAre(10, 11, 0, 0));
    EXPECT_THAT(values(two.position_weights[both]), ElementsAre(1, 0));
  }
}

TEST_F(NpyTextTest, AFolderTakesThePlaceOfAllInputsAndTargets) {
  const auto training = open(parameters());
  write<std::int64_t>("new/x.npy", {2, 4}, {7, 6, 5, 0, 1, 0, 0, 0});
  write<std::int64_t>("new/len.npy", {2}, {3, 1});
  write<std::int64_t>("new/tags.npy", {2, 4}, {8, 8, 5, 0, 5, 0, 0, 0});
  write<double>("new/both.npy", {2, 4, 2}, std::vector<double>(16, 1));
  write<std::uint8_t>("new/kind.npy", {2}, {1, 0});
  write<std::uint8_t>("new/mask.npy", {2, 4}, std::vector<std::uint8_t>(8, 1));
  write<std::int64_t>("new/seg.npy", {2, 4}, std::vector<std::int64_t>(8, 0));
  Json moved = parameters();
  moved["inputs"] = path("new");

  const auto evaluated = open_later(Purpose::kEvaluate, *training, moved);
  for (const char* target : {"tags", "both", "kind"})
    std::filesystem::remove(file("new/" + std::string(target) + ".npy"));
  const auto predicted = open_later(Purpose::kPredict, *training, moved);

  EXPECT_EQ(evaluated->spec(), training->spec());
  EXPECT_THAT(values(input(*evaluated, batch(*evaluated), "text")), ElementsAre(7, 6, 5, 1, 0, 0));
  EXPECT_THAT(targets(*evaluated, evaluated->spec().target_index("tags")),
              ElementsAre(1, 1, 0, 0, 0, 0));
  EXPECT_TRUE(predicted->spec().targets.empty());
  testing::expect_same(batch(*predicted).inputs, batch(*evaluated).inputs, "input");
  write<std::int64_t>("new/x.npy", {2, 4}, {7, 6, 8, 0, 1, 0, 0, 0});
  EXPECT_EQ(message_of([&] { open_later(Purpose::kPredict, *training, moved); }),
            "new/x.npy: row 0, at [2]: the vocabulary has 8 tokens from 0 on, got 8");
}

TEST_F(NpyTextTest, RowsThatAreDroppedTakeTheirLengthsWithThem) {
  Json with_times = parameters();
  with_times["missing"] = "drop_row";
  with_times["weights"] = path("w.npy");
  write<double>("w.npy", {4}, {kNan, 1, 2, 3});

  const auto data = open(with_times);

  EXPECT_EQ(rows(*data).rows(), 3);
  EXPECT_THAT(values(input(*data, batch(*data), "text")), ElementsAre(3, 0, 0, 0, 1, 2));
  EXPECT_THAT(values(rows(*data).lengths(data->spec().input_index("text"))), ElementsAre(1, 0, 2));
  EXPECT_THAT(targets(*data, data->spec().target_index("tags")), ElementsAre(1, 0, 0, 0, 1, 0));
}

TEST_F(NpyTextTest, SayWhatDoesNotFit) {
  const auto with = [&](const char* where, const Json& value) {
    Json changed = parameters();
    changed[Json::json_pointer(where)] = value;
    return error(changed);
  };
  write<std::int64_t>("long.npy", {4}, {3, 6, 0, 2});
  write<float>("float.npy", {4, 5}, std::vector<float>(20));
  write<std::int64_t>("wide.npy", {4, 6}, std::vector<std::int64_t>(24, 5));

  EXPECT_EQ(with("/inputs/text/lengths", path("long.npy")),
            "long.npy: row 1: a length is an integer from 0 to 5, as rows of x.npy have, got 6");
  EXPECT_EQ(with("/inputs/text/vocabulary_size", 5),
            "x.npy: row 0, at [2]: the vocabulary has 5 tokens from 0 on, got 7");
  EXPECT_EQ(with("/inputs/text/path", path("float.npy")),
            "float.npy: tokens, masks and segments are integers, got rows of the shape (5,) and "
            "type float32");
  EXPECT_EQ(with("/target/tags/path", path("wide.npy")),
            "wide.npy: rows have the shape (6,), but those of x.npy, which the target is padded "
            "like, the shape (5,)");
  EXPECT_EQ(with("/target/tags/padded_like", "mask"),
            "tags.npy: target \"tags\" is padded like \"mask\", which is no input with "
            "\"lengths\"");
  EXPECT_EQ(with("/inputs/mask/path", path("tags.npy")),
            "tags.npy: row 0, at [0]: a mask is 0 or 1, got 5\n"
            "tags.npy: row 0, at [1]: a mask is 0 or 1, got 8\n"
            "tags.npy: row 0, at [2]: a mask is 0 or 1, got 5\n"
            "tags.npy: row 1, at [0]: a mask is 0 or 1, got 8\n"
            "tags.npy: row 3, at [0]: a mask is 0 or 1, got 8\n"
            "and 1 more");
  EXPECT_EQ(with("/inputs/seg/of", "texts"),
            "seg.npy: input \"seg\" describes another one, which \"of\" must name");
}

TEST_F(NpyDataTest, TargetsHaveAnyShapeAndKind) {
  write_table("x.npy", 2);
  write<std::uint8_t>("pixels.npy", {2, 2, 2}, {0, 3, 3, 0, 1, 1, 0, 3});
  write<std::uint8_t>("tags.npy", {2, 3}, {0, 1, 1, 0, 0, 0});
  write<float>("mix.npy", {2, 2, 2}, {0.5F, 0.5F, 0, 1, 1, 0, 0.25F, 0.75F});
  write<float>("field.npy", {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  OpenRequest request;
  request.target_kinds = {{"pixels", {TargetKind::kClasses}}};

  const auto data =
      open({{"target",
             {{"field", path("field.npy")},
              {"mix", {{"path", path("mix.npy")}, {"kind", "distribution"}}},
              {"pixels", path("pixels.npy")},
              {"tags",
               {{"path", path("tags.npy")}, {"kind", "labels"}, {"classes", {"a", "b", "c"}}}}}}},
           request);

  const std::vector<TargetSpec>& specs = data->spec().targets;
  EXPECT_EQ(specs[0], (TargetSpec{"field", TargetKind::kNumbers, {1, 3}}));
  EXPECT_EQ(specs[1], (TargetSpec{"mix", TargetKind::kDistribution, {2, 2}, {"0", "1"}}));
  EXPECT_EQ(specs[2], class_target("pixels", {"0", "1", "3"}, {2, 2}));
  EXPECT_EQ(specs[3], (TargetSpec{"tags", TargetKind::kLabels, {3}, {"a", "b", "c"}}));
  EXPECT_THAT(targets(*data, 2), ElementsAre(0, 2, 2, 0, 1, 1, 0, 2));
  EXPECT_EQ(rows(*data).targets(3).scalar_type(), at::kFloat);
  write<float>("mix.npy", {2, 2, 2}, {0.5F, 0.5F, 0, 1, 1, 0, 0.25F, 0.5F});
  EXPECT_EQ(error({{"target", {{"path", path("mix.npy")}, {"kind", "distribution"}}}}),
            "mix.npy: row 1: the distribution sums to 0.75; its numbers must sum to 1");
  EXPECT_EQ(error({{"target", {{"path", path("field.npy")}, {"kind", "labels"}}}}),
            "field.npy: row 0: a label must be 0 or 1, got 2\n"
            "field.npy: row 0: a label must be 0 or 1, got 3\n"
            "field.npy: row 1: a label must be 0 or 1, got 4\n"
            "field.npy: row 1: a label must be 0 or 1, got 5\n"
            "field.npy: row 1: a label must be 0 or 1, got 6");
}

TEST_F(NpyDataTest, PositionsHaveWeightsAndThoseOfWeightZeroMayHoldAnything) {
  write_table("x.npy", 2);
  write<std::uint8_t>("pixels.npy", {2, 2, 2}, {0, 3, 255, 0, 3, 255, 0, 3});
  write<std::uint8_t>("mask.npy", {2, 2, 2}, {1, 2, 0, 1, 1, 0, 1, 1});
  write<double>("field.npy", {2, 3}, {1, 2, 3, kNan, -1e300, 6});
  write<float>("known.npy", {2}, {0.5F, 0});
  write<float>("rows.npy", {2}, {3, 1});
  const Json parameters = {
      {"target",
       {{"field", {{"path", path("field.npy")}, {"weights", path("known.npy")}}},
        {"pixels",
         {{"path", path("pixels.npy")}, {"kind", "classes"}, {"weights", path("mask.npy")}}},
        {"plain", path("rows.npy")}}},
      {"weights", path("rows.npy")}};

  const auto data = open(parameters);

  const Batch all = batch(*data);
  ASSERT_EQ(all.position_weights.size(), 3U);
  EXPECT_THAT(values(all.targets[0]), ElementsAre(1, 2, 3, 0, 0, 0));
  EXPECT_THAT(values(all.position_weights[0]), ElementsAre(0.5, 0));
  EXPECT_EQ(data->spec().targets[1], class_target("pixels", {"0", "3"}, {2, 2}));
  EXPECT_THAT(values(all.targets[1]), ElementsAre(0, 1, 0, 0, 1, 0, 0, 1));
  EXPECT_THAT(values(all.position_weights[1]), ElementsAre(1, 2, 0, 1, 1, 0, 1, 1));
  EXPECT_EQ(all.position_weights[1].sizes(), all.targets[1].sizes());
  EXPECT_FALSE(all.position_weights[2].defined());
  EXPECT_TRUE(testing::same(rows(*data).position_weights(1), all.position_weights[1]));
  const auto counted = TargetBatch::original(all, 1, data->spec().targets[1]);
  EXPECT_THAT(values(counted.weights()), ElementsAre(3, 6, 0, 3, 1, 0, 1, 1)) << "times the row's";

  const std::string hash = data->content_hash();
  write<std::uint8_t>("mask.npy", {2, 2, 2}, {1, 1, 0, 1, 1, 0, 1, 1});
  EXPECT_NE(open(parameters)->content_hash(), hash);
}

TEST_F(NpyTextTest, WeightsOfPositionsEndWithTheText) {
  write<float>("w.npy", {4, 5}, {1, 0.5F, 2, -7, 9, 4, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 3, 9, 9, 9});
  write<std::int64_t>("new/x.npy", {1, 5}, {7, 6, 5, 0, 1});
  write<std::int64_t>("new/len.npy", {1}, {2});
  write<std::int64_t>("new/tags.npy", {1, 5}, {8, 77, 0, 0, 0});
  write<double>("new/both.npy", {1, 5, 2}, std::vector<double>(10, 1));
  write<std::uint8_t>("new/kind.npy", {1}, {1});
  write<std::uint8_t>("new/mask.npy", {1, 5}, std::vector<std::uint8_t>(5, 1));
  write<std::int64_t>("new/seg.npy", {1, 5}, std::vector<std::int64_t>(5, 0));
  write<float>("new/w.npy", {1, 5}, {2, 0, 1, 1, 1});
  for (const char* access : {"memory", "mapped", "chunked"}) {
    SCOPED_TRACE(access);
    Json weighed = parameters(access);
    weighed["target"]["tags"]["weights"] = path("w.npy");
    const auto data = open(weighed);
    const std::size_t tags = data->spec().target_index("tags");
    const std::size_t both = data->spec().target_index("both");

    const Batch all = batch(*data);
    EXPECT_THAT(values(all.position_weights[tags]),
                ElementsAre(1, 0.5, 2, 4, 0, 0, 0, 0, 0, 0, 3, 0));
    EXPECT_THAT(values(all.position_weights[both]),
                ElementsAre(1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0));
    EXPECT_THAT(values(testing::gathered(rows(*data), 1, 2).position_weights[tags]),
                ElementsAre(4));

    Json moved = weighed;
    moved["inputs"] = path("new");
    const auto later = open_later(Purpose::kEvaluate, *data, moved);
    EXPECT_THAT(values(batch(*later).position_weights[tags]), ElementsAre(2, 0));
  }
}

TEST_F(NpyTextTest, RowsThatAreDroppedTakeTheWeightsOfTheirPositionsWithThem) {
  write<double>("w.npy", {4, 5}, {kNan, 1, 1, 1, 1, 4, 0, 0, 0, 0,  //
                                  0,    0, 0, 0, 0, 5, 6, 0, 0, 0});
  Json weighed = parameters();
  weighed["missing"] = "drop_row";
  weighed["target"]["tags"]["weights"] = path("w.npy");

  const auto data = open(weighed);

  EXPECT_EQ(rows(*data).rows(), 3);
  const std::size_t tags = data->spec().target_index("tags");
  EXPECT_THAT(values(batch(*data).position_weights[tags]), ElementsAre(4, 0, 0, 0, 5, 6));
  EXPECT_THAT(values(rows(*data).position_weights(tags)), ElementsAre(4, 0, 0, 0, 5, 6));
}

TEST_F(NpyDataTest, AnotherFileCanBePredictedOn) {
  write_five();
  write_table("new.npy", 2, 3, 7);
  const auto training = open({{"columns", {"a", "b", "c"}}});

  const auto later = open_later(Purpose::kPredict, *training,
                                {{"inputs", path("new.npy")}, {"target", path("none.npy")}});

  EXPECT_THAT(features(*later), ElementsAre(700, 701, 702, 800, 801, 802));
  EXPECT_EQ(later->spec().inputs, training->spec().inputs);
}

TEST_F(NpyDataTest, AFolderWithFilesOfTheSameNamesTakesThePlaceOfAllOfThem) {
  const Json parameters = {{"inputs", {{"a", path("x.npy")}, {"b", {path("p-*.npy")}}}},
                           {"target", path("y.npy")},
                           {"weights", path("w.npy")}};
  write_table("x.npy", 3);
  write_table("p-1.npy", 2, 2);
  write_table("p-2.npy", 1, 2);
  write<std::int64_t>("y.npy", {3}, {4, 8, 4});
  write<float>("w.npy", {3}, {1, 2, 3});
  write_table("later/x.npy", 2, 3, 50);
  write_table("later/p-0.npy", 2, 2, 60);
  write<std::int64_t>("later/y.npy", {2}, {8, 8});
  write<float>("later/w.npy", {2}, {5, 6});
  const auto training = open(parameters);

  Json moved = parameters;
  moved["inputs"] = path("later");
  const auto evaluated = open_later(Purpose::kEvaluate, *training, moved);
  std::filesystem::remove(file("later/y.npy"));
  const auto predicted = open_later(Purpose::kPredict, *training, moved);

  EXPECT_THAT(features(*evaluated), ElementsAre(5000, 5001, 5002, 5100, 5101, 5102));
  EXPECT_THAT(values(batch(*evaluated).inputs[1]), ElementsAre(6000, 6001, 6100, 6101));
  EXPECT_THAT(targets(*evaluated), ElementsAre(1, 1));
  EXPECT_THAT(values(batch(*evaluated).weights), ElementsAre(5, 6));
  EXPECT_EQ(features(*predicted), features(*evaluated));
}

TEST_F(NpyDataTest, ADamagedStateIsRefused) {
  write_five();
  const auto training = open();
  const auto load = [&](const char* key, const Json& value) {
    StateDict state = training->state();
    state.put(key, value);
    return message_of([&] { make()->load_state(state); });
  };

  EXPECT_EQ(load("inputs", {{"a", path()}, {"b", path()}}),
            "stored description of the data contradicts itself");
  Json spec = training->state().value("spec");
  spec["inputs"][0]["shape"] = {4};
  EXPECT_EQ(load("spec", spec), "stored description of the data contradicts itself");
  EXPECT_THAT(load("labels", "no"),
              ::testing::StartsWith("stored description of the data cannot be read: "));
  EXPECT_THAT(load("inputs", 3),
              ::testing::StartsWith("stored description of the data cannot be read: "));
}

}  // namespace
}  // namespace treadle::arrays
