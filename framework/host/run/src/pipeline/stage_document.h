#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/document.h>
#include <treadle/base/problem.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/runtime.h>

/// The document of a "run" stage: the pipeline's other keys with the stage's own merged into them;
/// and the way back from a problem in it to the place where the pipeline's author wrote it.
namespace treadle::internal {

inline constexpr const char* kStagesKey = "stages";
inline constexpr const char* kRunKey = "run";

/// As a JSON merge patch (RFC 7396), but for components: a value with `use` replaces the other as a
/// whole. `pipeline` is the whole document and has the stage.
nlohmann::json run_document(const nlohmann::json& pipeline, const std::string& stage);

/// The pointer in the pipeline's document of what is at `pointer` in that of a stage:
/// "/stages/NAME/run/optimizer/learning_rate" where the stage wrote it, else
/// "/optimizer/learning_rate". A value that nobody wrote belongs to whichever wrote more of the
/// objects around it.
std::string pointer_in_pipeline(const nlohmann::json& pipeline, const std::string& stage,
                                const std::string& pointer);

/// "/stages/NAME/run"
std::string run_pointer(const std::string& stage);

/// The problem, in the document of `stage`, by its place in the pipeline's; as it is where it is in
/// a file of its own.
Problem placed(const Document& pipeline, const std::string& stage, Problem problem);

/// Throws as expect_stages() does. `document` is the pipeline's, whose other problems do not
/// matter.
void expect_run_documents(const Runtime& runtime, const Document& document,
                          std::span<const Pipeline::Stage> stages);

/// Problems of stages' documents, by their place in the pipeline's.
class StageProblems {
 public:
  explicit StageProblems(const Document& pipeline) : pipeline_(pipeline) {}

  /// Once for each stage that was checked, a "run".
  void add(const std::string& stage, std::vector<Problem> problems);
  /// In the order of the text. One in the keys that all stages share is listed once where each has
  /// it, else once for each with its name in front.
  std::vector<Problem> take();

 private:
  struct Found {
    Problem problem;
    std::set<std::string> stages;
    bool is_shared;  // not in the stage's own keys
  };

  const Document& pipeline_;
  std::set<std::string> checked_;
  std::vector<Found> found_;
};

}  // namespace treadle::internal
