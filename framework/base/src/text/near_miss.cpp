#include <treadle/base/near_miss.h>

#include <algorithm>
#include <utility>

#include <treadle/base/json_words.h>

namespace treadle {
namespace {

constexpr std::size_t kMostSuggestions = 3;
// Nobody mistypes a word this long, and the distance costs the product of the lengths.
constexpr std::size_t kLongestWord = 200;

// Upper case and dashes are slips of their own kind, not edits.
std::string folded(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
    if (c == '-')
      c = '_';
  }
  return text;
}

std::size_t distance_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min(
          {previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

// "sep" for "separator", "lr" for "learning_rate", "iou" for "mean_iou".
bool is_short_for(std::string_view word, std::string_view candidate) {
  constexpr std::size_t kShortestBeginning = 3;
  constexpr std::size_t kShortestPart = 2;
  const std::string brief = folded(word);
  const std::string whole = folded(candidate);
  if (brief.size() >= kShortestBeginning && whole.starts_with(brief))
    return true;
  if (brief.size() >= kShortestPart &&
      ("_" + whole + "_").find("_" + brief + "_") != std::string::npos)
    return true;
  std::string initials;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i == 0 || whole[i - 1] == '_')
      initials += whole[i];
  }
  return initials.size() > 1 && initials == brief;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  return distance_between(folded(a), folded(b));
}

std::vector<std::string> near_misses(std::string_view word,
                                     std::span<const std::string> candidates) {
  if (word.size() > kLongestWord)
    return {};
  const std::size_t furthest = std::max<std::size_t>(1, word.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > word.size() + furthest)
      continue;
    const std::size_t distance = edit_distance(word, candidate);
    // A letter for a letter is no likeness.
    const bool is_alike = distance < std::max(word.size(), candidate.size());
    if (distance <= furthest && is_alike)
      near.emplace_back(distance, candidate);
  }
  if (near.empty()) {
    for (const std::string& candidate : candidates) {
      if (is_short_for(word, candidate))
        near.emplace_back(furthest, candidate);
    }
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  // Next to a much better one, a poor suggestion is noise.
  std::erase_if(near, [best = near.empty() ? 0 : near.front().first](const auto& candidate) {
    return candidate.first > best + 1;
  });
  if (near.size() > kMostSuggestions)
    near.resize(kMostSuggestions);
  std::vector<std::string> words;
  for (const auto& [distance, candidate] : near)
    words.emplace_back(candidate);
  return words;
}

std::string name_list(std::span<const std::string> names) {
  constexpr std::size_t kMostListed = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostListed; ++i)
    text += (i == 0 ? "" : ", ") + plain_text(names[i]);
  if (names.size() > kMostListed)
    text += " and " + std::to_string(names.size() - kMostListed) + " more";
  return names.empty() ? "none" : text;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> words = near_misses(word, candidates);
  if (words.empty())
    return {};
  std::string text = "; did you mean ";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? " or " : ", ";
    text += quote_text(words[i]);
  }
  return text + "?";
}

}  // namespace treadle
