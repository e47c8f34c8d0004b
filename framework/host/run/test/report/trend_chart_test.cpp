#include <treadle/host/run/trend_chart.h>

#include <cmath>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TrendRecorder recorded() {
  TrendRecorder recorder;
  recorder.add_group("losses", {"loss", "</script>"});
  for (const double value : {1.5, std::nan(""), 0.5}) {
    recorder.record("loss", value);
    recorder.record("rate", 0.1);
    recorder.flush();
  }
  recorder.record("</script>", 2);
  recorder.flush();
  return recorder;
}

TEST(TrendChart, DrawsWhatWasFlushed) {
  const std::string page = render_trends("by hand", recorded(), {"losses"});

  EXPECT_THAT(page, HasSubstr("\"kind\":\"trends\""));
  EXPECT_THAT(page, HasSubstr("\"title\":\"by hand\""));
  EXPECT_THAT(page,
              HasSubstr("\"lines\":[{\"label\":\"loss\",\"points\":[[1,1.5],[2,null],[3,0.5]]},"
                        "{\"label\":\"\\u003c/script>\",\"points\":[[1,2.0]]}]"));
  EXPECT_THAT(page, Not(HasSubstr("\"rate\"")));
  EXPECT_THAT(page, Not(HasSubstr("src=\"http")));
}

TEST(TrendChart, HasNothingToDrawWithoutATrend) {
  TrendRecorder recorder;
  recorder.record("loss", 1);
  try {
    render_trends("empty", recorder);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "there is no trend to draw: nothing was flushed under these tags");
  }
}

}  // namespace
}  // namespace treadle
