#include "table_of_keys.h"

namespace treadle::testing {
namespace {

const std::vector<KeyReason>& without_effect() {
  static const std::vector<KeyReason> all{
      {":$schema", "for editors"},
      {":name", "names the run's folder"},
      {":extensions*", "for other programs"},
      {":explain*", "explains the model, cannot change it"},
      {":observers*", "hear what happens, cannot change it"},
      {"observer/*", "hear what happens, cannot change it"},
      {":resources.workers", "results do not depend on it"},
      {":resources.divide", "results do not depend on it"},
      {":resources.communicator", "results do not depend on it"},
      {"training/*:checkpoint*", "what a crash costs"},
      {"data/images:cache", "images are decoded once or each time"},
      {"data/npy:access", "where inputs are kept between two uses"},
      {"data/npy:chunk_rows", "how inputs are kept"},
      {"data/npy:resident_bytes", "how inputs are kept"},
      {"training/boosting:batch_size", "each round uses all rows at once"},
      {"training/boosting:drop_last", "each round uses all rows at once"},
      {"training/boosting:shuffle*", "each round uses all rows at once"},
      {"model/*:execution", "another way to compute the same bits"},
      {"model/*:branches", "another way to compute the same bits"},
  };
  return all;
}

const std::vector<KeyReason>& seldom() {
  static const std::vector<KeyReason> all{
      {"layer/*", "a step may lead nowhere, or to where no gradient passes"},
      {"model/flow:flow*", "a step may lead nowhere, or to where no gradient passes"},
      {"model/flow:initial*", "a state may lead nowhere"},
      {":search*", "another trial need not be the best"},
      {"tuner/*", "another trial need not be the best"},
      {"pruner/*", "another trial need not be the best"},
      {"loss/*_nll:quantiles*", "predictions have them, metrics need not"},
      {"metric/*:class", "may name the class that is taken anyway"},
      {"metric/*:average", "averages of one class, or of undefined values, are alike"},
      {"metric/top_k_accuracy:k", "the same rows may be right"},
      {"metric/f_beta:beta", "without a right row it is 0"},
      {"metric/cohen_kappa:weights", "two classes have one distance"},
      {"metric/ece:*", "few rows may be in the same bins"},
      {"metric/reliability:*", "few rows may be in the same bins"},
      {"*:target", "may name the only one there is"},
      {"data/*:target*.name", "the only one there is, no result names"},
      {"model/flow:outputs", "may name the tags that are taken anyway"},
      {"model/mlp:recompute_layers", "the same bits but for dropout, which draws other numbers"},
      {"model/gradient_boosted_trees:*", "a limit that trees of few rows need not reach"},
      {"optimizer/muon:*", "the model may have no matrix of a hidden layer"},
      {"optimizer/soap:max_precond_dim", "no side need be so long"},
      {"optimizer/soap:precondition_frequency", "the training may end before the next time"},
      {"optimizer/schedule_free_adamw:weight_lr_power", "all steps may have the same rate"},
      {"optimizer/adafactor:*", "bounds that need not be reached"},
      {"training/*:gradients", "gradients of back-propagation are what there is without it"},
      {"transform/impute:category", "no category need be missing"},
      {"optimizer/*:groups[].parameters*", "may name what another of the list names"},
      {"data/*:timezone", "a shift of all times, which a scaler may undo"},
      {"data/*:missing", "no value need be missing"},
      {"data/images:broken", "no image need be broken"},
      {"training/*:drop_last", "a stream without end has no last batch"},
      {"data/images:max_pixels", "a limit that no image need reach"},
      {"data/idx:max_bytes", "a limit that no file need reach"},
      {"data/images:classes*", "the order of the classes, which a measure need not show"},
      {"data/images:fit", "images may have the proportions of the size"},
      {"data/images:ignore_index", "no mask need have the value"},
      {"data/images:group", "a split at random does not look at groups"},
      {"data/images:image", "may name the column that is taken anyway"},
      {"data/idx:labels", "may name the file that is taken anyway"},
      {"data/idx:classes*", "labels are classes without it"},
      {"data/text:max_length", "no text need be so long"},
      {"tokenizer/*", "texts need not have what it is about"},
      {"validation/*:seed", "rows need not be drawn"},
      {"validation/*:shuffle", "groups of different sizes are in order of their sizes"},
      {"validation/*:refit", "with one fold there is a model without it"},
      {"validation/*:max_train_size", "may be what there is"},
      {"validation/*:stratify_by", "may name the target that is taken anyway"},
      {"model/*:weights*.strict", "the file may have what the model has"},
      {"data/*:missing_values*", "no field need have the text"},
      {"data/*:missing_target", "no target need be missing"},
      {"data/*:handle_unknown", "no row need have what the training rows lack"},
      {"data/sqlite:parameters*", "no row need be between two bounds"},
      {"transform/robust:quantile_range", "a scaler behind it may undo it"},
      {"transform/min_max:range", "a scaler behind it may undo it"},
      {"transform/*:max_value", "bytes have a white of their own"},
      {"transform/normalize:*", "a scaler behind it may undo it"},
      {"transform/color_jitter:*", "a scaler behind it may undo it"},
      {"transform/cutmix:*", "a patch may have no pixel, or a batch one row"},
      {"transform/mixup:*", "a batch may have one row, or be mixed already"},
      {"transform/random_erasing:*", "few pixels may hold no such box"},
      {"transform/random_affine:*", "few pixels may stay where they are"},
      {"transform/random_resized_crop:*", "few pixels may hold one such box"},
      {"transform/rand_augment:*", "operations of few pixels may change none"},
      {"transform/trivial_augment:*", "operations of few pixels may change none"},
      {"transform/rare_categories:*", "no category need be rare"},
      {"transform/*:columns*", "may name all there are"},
      {"transform/*:inputs*", "may name all there are"},
      {"data/*:task", "may say what auto decides"},
      {":resources.execution", "changes no result"},
      {":resources.intra_op_threads", "small operators are not cut"},
      {":resources.shards", "may say what auto decides"},
      {":outputs.fraction", "rows are set aside only where there is one split"},
      {":outputs*", "predictions change, and metrics need not"},
      {"output/*", "predictions change, and metrics need not"},
      {"training/*:evaluation_batch_size", "sums of other parts differ in the last digits"},
      {"training/*:clip*", "a bound that gradients need not reach"},
      {"schedule/*", "may act after the last epoch, or after the one whose weights are kept"},
      {"training/*:max_steps", "may lie behind the last epoch"},
      {"training/*:steps_per_epoch", "may be what a pass has, or act after the last step"},
      {"training/*:sampler*", "may be the order that there is without it"},
      {"sampler/*", "rows of one class, or of one length, are drawn alike"},
      {"training/*:shuffle_buffer", "a window may hold all rows that are trained on"},
      {"training/*:evaluate_every", "the last epoch is evaluated in any case"},
      {"training/*:early_stopping*", "the last epoch may be the best"},
      {"training/*:restore_best_weights*", "the last epoch may be the best"},
      {"training/*:reduce_on_plateau*", "the number may get better all the time"},
      {"training/*:freeze*", "a condition that need not hold"},
      {"training/*:ema*", "begins within the same step, or after the last"},
      {"training/*:swa*", "moments may fall together, or after the last"},
      {"callback/*", "acts under a condition that need not hold"},
  };
  return all;
}

const std::vector<KeyReason>& without_effect_in_random_documents() {
  static const std::vector<KeyReason> all{
      {"layer/*:name", "of a step without parameters, whose names results have"},
      {"layer/*:frozen", "of a verb that makes no layer of its own"},
      {"layer/spectral_norm:eps", "no norm falls below it"},
      {"layer/*:tied_to", "names another step; random flows draw such pairs"},
      {"layer/*:broadcast", "allows sizes that are refused without it"},
      {"data/npy:missing", "drawn with the holes that it is about"},
      {"data/npy:task", "the kinds of targets are given beside it"},
  };
  return all;
}

bool fits(const char* pattern, const char* text) {
  if (*pattern == '\0')
    return *text == '\0';
  if (*pattern == '*')
    return fits(pattern + 1, text) || (*text != '\0' && fits(pattern, text + 1));
  return *pattern == *text && fits(pattern + 1, text + 1);
}

std::optional<std::string> reason_in(const std::vector<KeyReason>& all, const std::string& label) {
  for (const KeyReason& entry : all) {
    if (fits(entry.label.c_str(), label.c_str()))
      return entry.reason;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_without_effect(const std::string& label) {
  return reason_in(without_effect(), label);
}

std::optional<std::string> why_never_here(const std::string& label) {
  return reason_in(without_effect_in_random_documents(), label);
}

std::optional<std::string> why_seldom(const std::string& label) {
  return reason_in(seldom(), label);
}

}  // namespace treadle::testing
