#include <treadle/search/storage/stored_text.h>

#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>

namespace treadle::storages {

std::string stored(const nlohmann::json& value) {
  return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

nlohmann::json read_stored(std::string_view text, const std::string& place) {
  nlohmann::json value = parse_json(text);
  if (value.is_discarded())
    throw StorageError(place +
                       ": has a description or a result that is no JSON: it was changed or "
                       "damaged; go on with a copy from before, or at another location");
  return value;
}

std::string given(std::optional<std::string> text, const std::string& place) {
  if (!text)
    throw StorageError(place +
                       ": lacks a name or a result in a row that has one: it was changed or "
                       "damaged; go on with a copy from before, or at another location");
  return std::move(*text);
}

void refuse_version(const std::string& place, std::int64_t got) {
  throw StorageError(place + ": has studies of version " + std::to_string(got) +
                     ", and this Treadle knows version " + std::to_string(kSchemaVersion) +
                     "; use the Treadle that the study was begun with, or another location");
}

void refuse_locked(const std::string& place, Patience::Duration waited) {
  throw StorageError(place + ": another process has held the lock for " +
                     nlohmann::json(waited.count()).dump() +
                     " s; end it, or let it go on if it was stopped, and try again");
}

void refuse_foreign(const std::string& place, const std::string& first_line) {
  throw StorageError(place + ": is no journal of studies, whose first line is " + first_line +
                     "; choose another location");
}

void refuse_replaced(const std::string& place) {
  throw StorageError(place +
                     ": was deleted or replaced while studies in it were worked on; put it "
                     "back and go on, or start again");
}

void refuse_study(const std::string& place, const std::string& study) {
  throw StorageError(place + ": has no study " + quote_text(study) +
                     ": it was deleted while it was worked on; begin it anew");
}

}  // namespace treadle::storages
