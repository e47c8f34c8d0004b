#include <atomic>
#include <thread>

#include <treadle/core/data/abilities/data_notes.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/group_names.h>
#include <treadle/testing/data/data_contract.h>

#include "image_fixture.h"

namespace treadle::images {
namespace {

using ImageFolders = ImageFixture;
using ImageLists = ImageFixture;
using ImageMasks = ImageFixture;
using BrokenImages = ImageFixture;
using Json = nlohmann::json;

TEST_F(ImageFolders, HaveAClassForEachFolderAndFilesByName) {
  put_five();
  write("set/dogs/notes.txt", "no image");
  write("set/dogs/.y.jpeg", "of a file system");
  std::filesystem::create_directories(file("set/.cache"));

  const auto data = open();

  const DataSpec& spec = data->spec();
  EXPECT_EQ(spec.inputs.at(0).shape, (std::vector<std::int64_t>{3, 23, 31}));
  EXPECT_EQ(spec.inputs.at(0).dtype, at::kByte);
  EXPECT_EQ(spec.targets.at(0).class_names, (std::vector<std::string>{"cats", "dogs"}));
  EXPECT_EQ(values(rows(*data).targets()), (std::vector<double>{0, 0, 0, 1, 1}));
  EXPECT_EQ(data->ask<SourceColumns>()->texts({"path", "class"}),
            (std::vector<std::vector<std::string>>{
                {"cats/a.png", "cats/b.png", "cats/c.WEBP", "dogs/x.png", "dogs/y.jpeg"},
                {"cats", "cats", "cats", "dogs", "dogs"}}));
}

// b.png and c.WEBP have the same pixels.
TEST_F(ImageFolders, AreDecodedByContentIntoBytes) {
  put_five();
  const Batch all = batch(*open());

  EXPECT_EQ(all.inputs[0].scalar_type(), at::kByte);
  EXPECT_TRUE(at::equal(all.inputs[0][1], all.inputs[0][2]));
  EXPECT_TRUE(at::equal(all.inputs[0][0][0], all.inputs[0][0][1]));  // gray
  EXPECT_FALSE(at::equal(all.inputs[0][1], all.inputs[0][3]));
}

TEST_F(ImageFolders, AreTheSameWithAndWithoutACache) {
  put_five();
  const auto cached = open();
  const Batch before = batch(*cached);
  const Batch again = batch(*cached);
  const auto two = open({{"cache", 2 * 3 * 23 * 31 + 5}});

  EXPECT_TRUE(testing::same(before.inputs[0], again.inputs[0]));
  EXPECT_TRUE(testing::same(before.inputs[0], batch(*open({{"cache", 0}})).inputs[0]));
  EXPECT_TRUE(testing::same(before.inputs[0], batch(*two).inputs[0]));
  EXPECT_TRUE(testing::same(before.inputs[0], batch(*two).inputs[0]));
}

TEST_F(ImageFolders, GiveSeveralThreadsTheSame) {
  put_five();
  const Batch expected = batch(*open());
  const auto data = open({{"cache", 3 * 3 * 23 * 31}});
  std::atomic<int> different = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i)
          different += testing::same(batch(*data).inputs[0], expected.inputs[0]) ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(different, 0);
}

TEST_F(ImageFolders, AreResizedWhereTheySay) {
  put_five();
  put("photo.jpg", "set/dogs/z.jpg");

  EXPECT_EQ(error(),
            "set/dogs/z.jpg: has 200x120 pixels, but set/cats/a.png has 31x23; \"size\" resizes "
            "all of them");
  const auto data = open({{"size", {8, 12}}, {"mode", "gray"}, {"fit", "pad"}});
  EXPECT_EQ(batch(*data).inputs[0].sizes(), (std::vector<std::int64_t>{6, 1, 8, 12}));
}

TEST_F(ImageFolders, ThatHaveNoClassesOrImagesAreRefused) {
  put("rgb.png", "set/a.png");
  EXPECT_EQ(error(),
            "set: expected a folder for each class, with its images, and found none; a CSV file "
            "may list images and labels instead");
  std::filesystem::create_directories(file("set/cats"));
  EXPECT_EQ(error(), "set/cats: no file in this class is called .jpg, .jpeg, .png or .webp");
  EXPECT_EQ(error({{"path", file("nowhere").string()}}), "nowhere: no such folder or file");
}

TEST_F(ImageFolders, ThatLeadBackToThemselvesAreRefused) {
  put_five();
  std::filesystem::create_directory_symlink(file("set/cats"), file("set/cats/again"));
  EXPECT_NE(error().find("folders deep; does a link lead back?"), std::string::npos) << error();
}

TEST_F(ImageFolders, AreEvaluatedWithTheClassesOfTheTraining) {
  put_five();
  const auto training = open();
  put("rgb.png", "later/dogs/a.png");
  put("rgb.png", "other/cows/a.png");

  const auto later = open_later(Purpose::kEvaluate, *training, {{"path", file("later").string()}});

  EXPECT_EQ(values(rows(*later).targets()), std::vector<double>{1});
  EXPECT_EQ(message_of([&] {
              open_later(Purpose::kEvaluate, *training, {{"path", file("other").string()}});
            }),
            "other/cows/a.png: column \"class\": class \"cows\" is not in the training data, which "
            "has cats, dogs");
}

TEST_F(ImageFolders, ArePredictedFlatOrAsOneImage) {
  put_five();
  const auto training = open();
  put("rgb.png", "flat/b.png");
  put("rgb.png", "flat/deep/a.png");
  put("photo.jpg", "photo.jpg");

  const auto flat = open_later(Purpose::kPredict, *training, {{"path", file("flat").string()}});
  const auto one =
      open_later(Purpose::kPredict, *training, {{"path", file("flat/b.png").string()}});

  EXPECT_TRUE(flat->spec().targets.empty());
  EXPECT_EQ(flat->ask<SourceColumns>()->texts({"path"})[0],
            (std::vector<std::string>{"b.png", "deep/a.png"}));
  EXPECT_EQ(rows(*one).rows(), 1);
  EXPECT_EQ(message_of([&] {
              open_later(Purpose::kPredict, *training, {{"path", file("photo.jpg").string()}});
            }),
            "photo.jpg: has 200x120 pixels, but the model was trained on images of 31x23");
}

TEST_F(ImageFolders, HaveAnotherHashWhenAPixelChanges) {
  put_five();
  const auto before = open();
  EXPECT_EQ(before->content_hash(), open()->content_hash());
  EXPECT_EQ(before->ask<SourceHash>()->source_hash(),
            open({{"size", 8}})->ask<SourceHash>()->source_hash());
  EXPECT_NE(before->content_hash(), open({{"size", 8}})->content_hash());
  put("palette.png", "set/cats/b.png");

  EXPECT_NE(before->content_hash(), open()->content_hash());
  EXPECT_NE(before->ask<SourceHash>()->source_hash(), open()->ask<SourceHash>()->source_hash());
}

TEST_F(ImageFolders, AreNoNumbersWhateverMetricsTake) {
  put_five();
  OpenRequest request = wanting(Task::kRegression);
  const std::string expected =
      "set: numbers are wanted, and the folder \"cats\" is a class; list the images and their "
      "numbers in a CSV file, or train for classes";
  EXPECT_EQ(error(Json::object(), request), expected);
  request.target_kinds[""] = {TargetKind::kClasses};
  EXPECT_EQ(error(Json::object(), request), expected) << "the task decides before a metric does";
}

TEST_F(ImageFolders, ThatChangeDuringARunAreAnError) {
  put_five();
  const auto data = open({{"cache", 0}});
  put("palette.png", "set/cats/b.png");

  EXPECT_EQ(message_of([&] { batch(*data); }),
            "set/cats/b.png: has changed since the data was opened");
}

TEST_F(ImageLists, HaveLabelsBesidePaths) {
  put_five("images");
  write("list.csv",
        "id,path,label\n1,images/dogs/x.png,10\n2,images/cats/a.png,9\n3,images/cats/b.png,10\n");

  const auto data = open(list(), wanting(Task::kClassification));

  EXPECT_EQ(data->spec().targets.at(0).name, "label");
  EXPECT_EQ(data->spec().targets[0].class_names, (std::vector<std::string>{"9", "10"}));
  EXPECT_EQ(values(rows(*data).targets()), (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(data->ask<SourceColumns>()->texts({"id"})[0],
            (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(message_of([&] { data->ask<SourceColumns>()->texts({"idd"}); }),
            "list.csv: has no column \"idd\"; did you mean \"id\"? (columns: path, id, label)");
}

TEST_F(ImageLists, HaveNumbersInOneOrSeveralColumns) {
  put_five("images");
  write("list.csv",
        "path,x,y\nimages/dogs/x.png,0.5,1e3\nimages/cats/a.png,-2,0.1\nimages/cats/b.png,1,2\n");

  const auto one = open(list());
  Json both = list();
  both["target"] = {"x", "y"};
  const auto two = open(both);

  EXPECT_EQ(one->spec().targets.at(0).kind, TargetKind::kNumbers);
  EXPECT_EQ(values(rows(*one).targets()), (std::vector<double>{1000, 0.1, 2}));
  EXPECT_EQ(two->spec().targets.at(0).shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(values(rows(*two).targets()), (std::vector<double>{0.5, 1000, -2, 0.1, 1, 2}));
}

TEST_F(ImageLists, HaveTheTargetInTheirLastOtherColumn) {
  put_five("images");
  write("list.csv", "id,label,path\n1,5,images/dogs/x.png\n2,6,images/cats/a.png\n");

  const auto data = open(list());

  EXPECT_EQ(data->spec().targets.at(0).name, "label");
}

TEST_F(ImageLists, HaveGroupsWithTheNumbersOfTheTraining) {
  put_five("images");
  write("list.csv",
        "path,patient,label\nimages/dogs/x.png,p7,a\nimages/cats/a.png,p3,b\nimages/cats/"
        "b.png,p7,b\n");
  write("later.csv", "path,patient,label\nimages/dogs/x.png,p9,a\nimages/cats/a.png,p3,b\n");
  Json parameters = list();
  parameters["group"] = "patient";
  const auto training = open(parameters);
  EXPECT_EQ(values(rows(*training).groups()), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(training->ask<GroupNames>()->name_of(1), "p3");
  EXPECT_EQ(open(list())->ask<GroupNames>(), nullptr);
  EXPECT_NE(training->content_hash(), open(list())->content_hash());
  parameters["path"] = file("later.csv").string();

  const auto later = open_later(Purpose::kEvaluate, *training, parameters);

  EXPECT_EQ(values(rows(*later).groups()), (std::vector<double>{2, 1}));
  EXPECT_EQ(later->ask<GroupNames>()->name_of(2), "p9");
}

TEST_F(ImageLists, RefuseParametersWithoutEffect) {
  put_five();
  write("list.csv", "path,x\nset/dogs/x.png,1.5\n");
  Json parameters = list();
  parameters["classes"] = {"a", "b"};
  EXPECT_EQ(error(parameters, wanting(Task::kRegression)),
            "list.csv: \"classes\" has no effect: \"x\" has numbers");
  EXPECT_EQ(error({{"image", "path"}}),
            "set: is a folder, and \"image\" is a column of a CSV file that lists images");
}

TEST_F(ImageLists, NameFileAndLineOfWhatIsWrong) {
  put_five("images");
  write("list.csv", "path,x\nimages/dogs/x.png,1\n\"images/cats/a.png\",two\n");
  EXPECT_EQ(error(list()), "no error");  // two classes
  EXPECT_EQ(error(list(), wanting(Task::kRegression)),
            "list.csv:3: images/cats/a.png: column \"x\": expected a number, got \"two\"");
  write("list.csv", "path,x\nimages/dogs/q.png,1\n");
  EXPECT_EQ(error(list()),
            "list.csv:2: images/dogs/q.png: cannot be read: No such file or directory");
  write("list.csv", "path,x\nimages/dogs/x.png\n");
  EXPECT_EQ(error(list()), "list.csv:2: expected 2 fields, as in the header, got 1");
  write("list.csv", "path,x\n\"images/dogs/x.png,1\n");
  EXPECT_EQ(error(list()), "list.csv:2: a quoted field has no end");
  write("list.csv", "path,x\n");
  EXPECT_EQ(error(list()), "list.csv: lists no images");
  write("list.csv", "path,x\nb\xE4r.png,1\n");
  EXPECT_EQ(error(list()), "list.csv:2: is not UTF-8");
}

TEST_F(ImageMasks, AreClassesAtEachPixel) {
  put("rgb.png", "a.png");
  put("mask_palette.png", "a-mask.png");
  write("list.csv", "path,mask\na.png,a-mask.png\na.png,a-mask.png\n");
  Json parameters = list();
  parameters["mask"] = "mask";

  const auto data = open(parameters);

  const TargetSpec& target = data->spec().targets.at(0);
  EXPECT_EQ(target.shape, (std::vector<std::int64_t>{23, 31}));
  EXPECT_EQ(target.class_names, (std::vector<std::string>{"0", "1", "2", "3"}));
  const at::Tensor mask = batch(*data).targets[0][1];
  EXPECT_EQ(mask[0][0].item<std::int64_t>(), 0);
  EXPECT_EQ(mask[22][30].item<std::int64_t>(), 3);
  EXPECT_FALSE(rows(*data).position_weights().defined());
}

TEST_F(ImageMasks, MoveWithTheirImageAndIgnoreWhatIsNoPixel) {
  put("rgb.png", "a.png");
  put("mask_gray.png", "a-mask.png");
  write("list.csv", "path,mask\na.png,a-mask.png\n");
  Json parameters = list();
  parameters.update({{"mask", "mask"},
                     {"size", {40, 31}},
                     {"fit", "pad"},
                     {"ignore_index", 255},
                     {"classes", {"sky", "sea", "land", "ice"}}});

  const auto data = open(parameters);
  const Batch one = batch(*data);

  const at::Tensor weights = one.position_weights.at(0)[0];
  // The picture is in rows 8 to 30; the first of them is of value 255.
  EXPECT_EQ(weights.sum().item<double>(), 22 * 31);
  EXPECT_EQ(weights[8].sum().item<double>(), 0);
  EXPECT_EQ(one.targets[0][0][30][30].item<std::int64_t>(), 3);
  EXPECT_TRUE(testing::same(rows(*data).position_weights(), one.position_weights[0]));
  EXPECT_TRUE(testing::same(rows(*data).targets(), one.targets[0]));
  parameters.erase("ignore_index");
  EXPECT_EQ(
      error(parameters),
      "list.csv:2: a.png: column \"mask\": a pixel has the value 255, which is no class: sky, "
      "sea, land, ice; \"ignore_index\" names a value that does not count");
}

TEST_F(ImageMasks, HaveTheSizeOfTheirImage) {
  put("photo.jpg", "a.jpg");
  put("mask_gray.png", "a-mask.png");
  write("list.csv", "path,mask\na.jpg,a-mask.png\n");
  Json parameters = list();
  parameters["mask"] = "mask";

  EXPECT_EQ(error(parameters),
            "list.csv:2: a.jpg: mask a-mask.png has 31x23 pixels, but its image has 200x120");
}

TEST_F(BrokenImages, AreErrorsThatNameTheFile) {
  put_five();
  put("text.png", "set/cats/k.png");
  put("bomb.png", "set/dogs/k.png");
  EXPECT_EQ(error(),
            "set/cats/k.png: is no JPEG, PNG or WebP\nset/dogs/k.png: has 60000x60000 pixels, more "
            "than \"max_pixels\" allows, 178956970");
}

// The header is whole; the run ends when the image is decoded.
TEST_F(BrokenImages, AreFoundAtTheLatestWhenTheyAreDecoded) {
  put_five();
  put("truncated.png", "set/cats/k.png");
  const auto data = open();

  EXPECT_EQ(message_of([&] { batch(*data); }),
            "set/cats/k.png: cannot be decoded as PNG: the file is truncated");
}

TEST_F(BrokenImages, AreLeftOutWhereTheyMayBe) {
  put_five();
  put("truncated.png", "set/cats/k.png");
  put("text.png", "set/cats/k.jpg");
  put("empty.png", "set/dogs/k.png");

  const auto data = open({{"broken", "skip"}});

  EXPECT_EQ(values(rows(*data).targets()), (std::vector<double>{0, 0, 0, 1, 1}));
  EXPECT_EQ(batch(*data).inputs[0].size(0), 5);
  EXPECT_EQ(data->ask<SourceColumns>()->texts({"path"})[0].at(3), "dogs/x.png");
  EXPECT_EQ(message_of([&] { throw DataError(data->ask<DataNotes>()->notes().at(0)); }),
            "3 of 8 images cannot be decoded and are left out, the first: set/cats/k.jpg: is no "
            "JPEG, PNG or WebP");
}

TEST_F(BrokenImages, ArePredictedByNobody) {
  put_five();
  const auto training = open({{"broken", "skip"}});
  put("truncated.png", "later/k.png");
  put("rgb.png", "later/a.png");

  EXPECT_EQ(message_of([&] {
              open_later(Purpose::kPredict, *training,
                         {{"path", file("later").string()}, {"broken", "skip"}});
            }),
            "later/k.png: cannot be decoded as PNG: the file is truncated");
}

}  // namespace
}  // namespace treadle::images

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

/// A list beside the images in data/.
DataCase images_case(std::string name, const Json& parameters) {
  return {std::move(name), [=] {
            static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
            Json complete = {{"path", (source_path(TREADLE_TEST_DATA) / "list.csv").string()}};
            complete.update(parameters);
            return plugin.make<DataProvider>("images", complete);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Images, DataContract,
    ::testing::Values(images_case("Classes", {{"target", "label"}, {"group", "x"}}),
                      images_case("Numbers", {{"target", {"x", "y"}}, {"cache", 5000}}),
                      images_case("Masks", {{"mask", "mask"}, {"cache", 0}}),
                      images_case("ClassesAndMasks", {{"target", "label"},
                                                      {"mask", "mask"},
                                                      {"size", {12, 9}},
                                                      {"fit", "pad"},
                                                      {"ignore_index", 255}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
