#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <treadle/search/study_storage.h>

#include <treadle/base/system/patience.h>
#include <treadle/search/storage/boot_clock.h>
#include "journal_file.h"

namespace treadle::storages {

/// `journal`: studies in a file of JSON lines, one per change, for the processes of one machine. No
/// library, and nothing that an editor could not mend.
///
///     {"treadle_storage":1}
///     {"op":"create","study":"iris","description":…}
///     {"op":"lease","study":"iris","job":0,"worker":"a","boot":"74f8…","until":5120.25}
///     {"op":"release","study":"iris","job":0,"worker":"a"}
///     {"op":"finish","study":"iris","job":0,"worker":"a","result":…}
///     {"op":"end","study":"iris","how":…}
///
/// Each call takes the lock, reads what others have appended, decides, and appends its own line. So
/// the file is the order of all changes, and each process comes to the same state from it.
class Journal final : public StudyStorage {
 public:
  explicit Journal(const Config& config);
  Journal(std::filesystem::path path, Patience::Duration patience);

 private:
  std::vector<std::string> do_studies() override;
  nlohmann::json do_create(const std::string& study, const nlohmann::json& description) override;
  std::optional<nlohmann::json> do_description(const std::string& study) override;
  bool do_claim(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override;
  bool do_renew(const std::string& study, std::int64_t job, const std::string& worker,
                double seconds) override;
  void do_release(const std::string& study, std::int64_t job, const std::string& worker) override;
  bool do_finish(const std::string& study, std::int64_t job, const std::string& worker,
                 const nlohmann::json& result) override;
  std::vector<StoredResult> do_results(const std::string& study, std::int64_t after) override;
  nlohmann::json do_end(const std::string& study, const nlohmann::json& how) override;
  nlohmann::json do_ended(const std::string& study) override;

  /// Who has a job, or had it when it ended.
  struct Job {
    std::string worker;
    Lease lease;
    bool has_ended = false;

    bool is_of(const std::string& name) const { return !has_ended && worker == name; }
  };
  struct Study {
    nlohmann::json description;
    nlohmann::json ended;
    std::map<std::int64_t, Job> jobs;  ///< that somebody has, or has ended
    std::vector<StoredResult> results;
  };

  /// Opens the file at the first call and reads what is new in it.
  JournalFile::Lock caught_up();
  /// Appends a line and does what it says.
  void append(const nlohmann::json& line);
  void append_lease(const std::string& study, std::int64_t job, const std::string& worker,
                    const BootTime& now, double seconds);
  void apply(const nlohmann::json& line);
  Study& known(const std::string& study);
  const Job* job_of(const std::string& study, std::int64_t job);

  std::filesystem::path path_;
  Patience::Duration patience_;
  std::optional<JournalFile> file_;
  bool has_version_ = false;
  std::map<std::string, Study> studies_;
};

}  // namespace treadle::storages
