#include <treadle/testing/training/observer_contract.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/training/told_run.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class ObserverClaims : public ::testing::WithParamInterface<ObserverCase> {
 protected:
  std::unique_ptr<RunObserver> make() const { return GetParam().make(folder_.path()); }

  static void tell(RunObserver& observer, const Calls& calls) {
    for (std::size_t i = 0; i < calls.size(); ++i)
      EXPECT_NO_THROW(calls[i](observer)) << "call " << i << " of " << calls.size();
  }

  static Calls first(const Calls& calls, std::size_t count) {
    return {calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  ToldRun run_;
  ScratchFolder folder_;
};

}  // namespace

LINKS_CLAIMS_OF(Observer)

CLAIM(Observer, HearsAWholeRun) {
  const auto observer = make();

  tell(*observer, run_.whole());

  EXPECT_EQ(folder_.files(), GetParam().leaves);
}

CLAIM(Observer, HearsTrainingsThatRunAtOnce) {
  for (std::uint64_t order = 1; order <= 5; ++order) {
    SCOPED_TRACE("order " + std::to_string(order));
    const auto observer = make();

    tell(*observer, run_.whole(order));

    EXPECT_EQ(folder_.files(), GetParam().leaves);
  }
}

CLAIM(Observer, HearsARunThatEndsAnywhere) {
  Calls calls = run_.beginning();
  ToldRun::append(calls, run_.training({"fold-1", 0, 3}));
  for (std::size_t count = 0; count <= calls.size(); ++count) {
    SCOPED_TRACE("after " + std::to_string(count) + " calls");
    const auto observer = make();

    tell(*observer, first(calls, count));
  }
}

CLAIM(Observer, HearsARunThatIsResumed) {
  const Calls whole = run_.whole();
  tell(*make(), first(whole, whole.size() / 2));
  const auto observer = make();

  tell(*observer, run_.resumed());

  EXPECT_EQ(folder_.files(), GetParam().leaves);
}

CLAIM(Observer, HearsOfRunsWithAnyName) {
  for (const char* name : {"", "a \"b\" \\ c\nd", "rêve/../鳶尾", "%s%n{}", "<script>"}) {
    SCOPED_TRACE(name);
    run_.name = name;
    run_.folder = "runs/" + run_.name;

    tell(*make(), run_.whole());
  }
  EXPECT_EQ(folder_.files(), GetParam().leaves);
}

CLAIM(Observer, MayBeToldFromAnotherThreadEachTime) {
  const auto observer = make();

  for (const Call& call : run_.whole(2))
    std::thread([&] { tell(*observer, {call}); }).join();

  EXPECT_EQ(folder_.files(), GetParam().leaves);
}

CLAIM(Observer, WritesOnlyWhereItWasTold) {
  const ScratchFolder here;
  const ScratchFolder runs;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(here.path());
  run_.folder = runs.path();

  tell(*make(), run_.whole());

  std::filesystem::current_path(before);
  EXPECT_EQ(here.files(), std::vector<std::string>());
  EXPECT_EQ(runs.files(), std::vector<std::string>());
  EXPECT_EQ(folder_.files(), GetParam().leaves);
}

CLAIM(Observer, SaysWhereItCannotWrite) {
  if (GetParam().leaves.empty())
    return;  // it does not write
  std::filesystem::remove_all(folder_.path());

  try {
    const auto observer = make();
    for (const Call& call : run_.whole())
      call(*observer);
    ADD_FAILURE() << "expected a StorageError";
  } catch (const StorageError& error) {
    EXPECT_NE(std::string(error.what()).find(folder_.path().string()), std::string::npos)
        << error.what();
  }
}

}  // namespace treadle::testing
