#include "text_forms.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <regex>
#include <set>

#include <treadle/base/json_words.h>

namespace treadle::automl {
namespace {

/// Nothing longer is a number or a date; and std::regex is no friend of long texts.
constexpr std::size_t kLongest = 40;

using Texts = std::vector<std::string>;
using Matches = std::vector<std::smatch>;

/// The matches of all texts, in order; none where one of them does not match.
Matches matches_of(const Texts& texts, const std::regex& form) {
  Matches matches(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!std::regex_match(texts[i], matches[i], form))
      return {};
  }
  return matches;
}

std::string hint(const std::string& what, const std::string& text, const std::string& instead) {
  return what + ", such as " + quote_text(text) + "; write " + instead;
}

/// Digits and a decimal point: what is left of "1.234,50 €" for a decimal `mark`; '\0': it has
/// none.
std::string number_in(const std::string& text, char mark) {
  std::string number;
  for (const char c : text) {
    if ((c >= '0' && c <= '9') || c == '-')
      number += c;
    else if (mark != '\0' && c == mark)
      number += '.';
  }
  return number;
}

/// Of an amount, which has two decimals or none: the last of its marks, unless three digits follow.
char decimal_mark_of(const std::string& amount) {
  const std::size_t at = amount.find_last_of(".,");
  if (at == std::string::npos)
    return '\0';
  const std::size_t behind = amount.find_first_not_of("0123456789", at + 1);
  const std::size_t digits = std::min(behind, amount.size()) - at - 1;
  return digits == 3 ? '\0' : amount[at];
}

std::string percentages(const Texts& texts) {
  static const std::regex kForm(R"([+-]?(\d+|\d*[.,]\d+)\s?%)");
  if (matches_of(texts, kForm).empty())
    return {};
  const bool has_comma = texts.front().find(',') != std::string::npos;
  return hint("percentages", texts.front(), number_in(texts.front(), has_comma ? ',' : '.'));
}

std::string amounts(const Texts& texts) {
  static const std::regex kForm(
      R"([+-]?\s?(\$|€|£|¥|[A-Z]{3}\s)\s?[+-]?\d[\d.,']*|[+-]?\d[\d.,']*\s?(\$|€|£|¥|\s[A-Z]{3})|\(\$\d[\d.,]*\))");
  if (matches_of(texts, kForm).empty())
    return {};
  return hint("amounts of money", texts.front(),
              number_in(texts.front(), decimal_mark_of(texts.front())));
}

std::string numbers_with_commas(const Texts& texts) {
  const std::string decimal = R"([+-]?(\d+|\d{1,3}(\.\d{3})+),\d+)";
  const std::string thousands = R"([+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?)";
  static const std::regex kDecimal(decimal);
  static const std::regex kThousands(thousands);
  static const std::regex kEither(decimal + "|" + thousands);
  if (matches_of(texts, kEither).empty())
    return {};
  const bool are_decimal = !matches_of(texts, kDecimal).empty();
  const bool are_thousands = !matches_of(texts, kThousands).empty();
  const std::string& text = texts.front();
  if (are_decimal && !are_thousands)
    return hint("numbers with a decimal comma", text, number_in(text, ','));
  if (are_thousands && !are_decimal)
    return hint("numbers with commas between thousands", text, number_in(text, '.'));
  return hint("numbers with a comma", text,
              number_in(text, ',') + " if it is a decimal comma, or " + number_in(text, '.') +
                  " if it is between thousands");
}

std::string numbers_with_gaps(const Texts& texts) {
  static const std::regex kForm(R"([+-]?\d{1,3}([ ']\d{3})+([.,]\d+)?)");
  if (matches_of(texts, kForm).empty())
    return {};
  const bool has_comma = texts.front().find(',') != std::string::npos;
  return hint("numbers with gaps between thousands", texts.front(),
              number_in(texts.front(), has_comma ? ',' : '.'));
}

std::string of_two_digits(const std::string& number) {
  return number.size() == 1 ? "0" + number : number;
}

/// `time` begins with a space or T, or is empty.
std::string iso_date(std::string year, const std::string& month, const std::string& day,
                     const std::string& time) {
  if (year.size() == 2)
    year.insert(0, "20");
  return year + "-" + of_two_digits(month) + "-" + of_two_digits(day) +
         (time.empty() ? "" : "T" + time.substr(1));
}

/// "12.3.2020", "12/03/20 10:00": the year last, before it the day or the month.
std::string dates_that_end_with_years(const Texts& texts) {
  static const std::regex kForm(
      R"((\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})([ T]\d{2}:\d{2}(:\d{2})?(?![:\d.]*\s?[AaPp]))?(\D.*)?)");
  const Matches dates = matches_of(texts, kForm);
  if (dates.empty())
    return {};
  const auto shows = [&](std::size_t part) {
    return std::find_if(dates.begin(), dates.end(),
                        [&](const std::smatch& date) { return std::stoi(date[part]) > 12; });
  };
  const auto day_first = shows(1);
  const auto month_first = shows(3);
  if (day_first != dates.end() && month_first != dates.end()) {
    return "dates, some with the day first, such as " + quote_text(day_first->str()) +
           ", some with the month first, such as " + quote_text(month_first->str()) + "; write " +
           iso_date((*day_first)[4], (*day_first)[3], (*day_first)[1], (*day_first)[5]) + " and " +
           iso_date((*month_first)[4], (*month_first)[1], (*month_first)[3], (*month_first)[5]);
  }
  if (day_first != dates.end()) {
    const std::smatch& date = *day_first;
    return hint("dates with the day first", date.str(),
                iso_date(date[4], date[3], date[1], date[5]));
  }
  if (month_first != dates.end()) {
    const std::smatch& date = *month_first;
    return hint("dates with the month first", date.str(),
                iso_date(date[4], date[1], date[3], date[5]));
  }
  const std::smatch& date = dates.front();
  return hint("dates", date.str(),
              iso_date(date[4], date[3], date[1], date[5]) + " if the day is first, or " +
                  iso_date(date[4], date[1], date[3], date[5]) + " if the month is");
}

std::string other_dates(const Texts& texts) {
  static const std::regex kYearFirst(
      R"((\d{4})([./-])(\d{1,2})\2(\d{1,2})([ T]\d{2}:\d{2}(:\d{2})?(?![:\d.]*\s?[AaPp]))?(\D.*)?)");
  static const std::regex kNamed(
      R"((\w{3,9},? )?(\d{1,2}\.?[ -])?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?([ -]\d{1,2},?)?[ -]\d{2,4}.*)",
      std::regex::icase);
  static const std::regex kMonth(R"((\d{4})[./-](\d{1,2}))");
  if (const Matches months = matches_of(texts, kMonth); !months.empty()) {
    const std::smatch& month = months.front();
    return hint("months", month.str(), "a day of it, " + iso_date(month[1], month[2], "01", ""));
  }
  if (const Matches dates = matches_of(texts, kYearFirst); !dates.empty()) {
    const std::smatch& date = dates.front();
    return hint("dates", date.str(), iso_date(date[1], date[3], date[4], date[5]));
  }
  if (matches_of(texts, kNamed).empty())
    return {};
  return hint("dates", texts.front(), "them as 2024-02-29");
}

std::string clock_times(const Texts& texts) {
  static const std::regex kForm(R"(\d{1,3}:\d{2}(:\d{2}([.,]\d+)?)?(\s?[AaPp]\.?[Mm]\.?)?)");
  if (matches_of(texts, kForm).empty())
    return {};
  return hint("times", texts.front(), "numbers, such as minutes");
}

/// "12 kg": the same unit behind each.
std::string numbers_with_units(const Texts& texts) {
  static const std::regex kForm(R"(([+-]?\d+(\.\d+)?)\s?([^\d\s.,;:+-]{1,12}))");
  const Matches numbers = matches_of(texts, kForm);
  std::set<std::string> units;
  for (const std::smatch& number : numbers)
    units.insert(number[3]);
  if (numbers.size() < 2 || units.size() != 1)
    return {};
  return hint("numbers with the unit " + quote_text(*units.begin()), texts.front(),
              numbers.front()[1]);
}

}  // namespace

std::string form_hint(const Texts& texts) {
  constexpr std::array kForms{
      percentages, amounts,     numbers_with_commas, numbers_with_gaps, dates_that_end_with_years,
      other_dates, clock_times, numbers_with_units};
  const bool are_short = std::all_of(
      texts.begin(), texts.end(), [](const std::string& text) { return text.size() <= kLongest; });
  if (texts.empty() || !are_short)
    return {};
  for (const auto& form : kForms) {
    if (std::string found = form(texts); !found.empty())
      return found;
  }
  return {};
}

}  // namespace treadle::automl
