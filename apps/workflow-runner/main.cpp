// workflow-runner: executes the commands that need no tensors at once, and hands the others to
// treadle-run, which takes this process over: same process id, terminal and signals.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/host/catalog/catalog_schema_index.h>
#include <treadle/host/catalog/component_description.h>
#include <treadle/host/catalog/plugin_catalog.h>
#include <treadle/host/catalog/plugin_lock.h>
#include <treadle/host/catalog/plugin_settings.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/catalog/workflow_editor_schema.h>

#include <treadle/host/compare/run_records.h>
#include "command_line/answer.h"
#include "command_line/program.h"
#include "compare/run_comparison.h"
#include "compare/run_listing.h"
#include "launch/launch_check.h"
#include "launch/launch_command.h"
#include "plugins/plugin_check.h"
#include "plugins/plugin_doctor.h"
#include "plugins/plugin_listing.h"
#include "plugins/plugin_scaffold.h"
#include "terminal/terminal.h"
#include "verify/verification.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::shared_ptr<const PluginCatalog> scan(const CommandLine& line) {
  return PluginCatalog::scan(catalog_options(line.plugin_settings()));
}

/// For commands that report what is wrong with a plugin, one named with --plugin included.
CatalogOptions reporting_options(const CommandLine& line) {
  CatalogOptions options = catalog_options(line.plugin_settings());
  options.only_report = true;
  return options;
}

std::filesystem::path this_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

/// The folder this program lies in.
std::filesystem::path program_folder() {
  return this_program().parent_path();
}

/// One thread per worker: TBB does the sharing. An OpenMP team in each worker makes steps several
/// times slower. Values set by the user stay.
void keep_to_one_thread_per_worker() {
  for (const char* variable : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    setenv(variable, "1", /*overwrite=*/0);
}

/// Replaces this process by the program of that path, seen from this one's folder. Returns only by
/// throwing.
void become(const char* path, char** argv, const std::string& remedy) {
  const std::filesystem::path program = (program_folder() / path).lexically_normal();
  keep_to_one_thread_per_worker();
  execv(program.c_str(), argv);
  throw PluginError(program.string() + ": cannot be started (" +
                    std::generic_category().message(errno) + "); " + remedy);
}

void become_treadle_run(char** argv) {
  become(TREADLE_RUN_PROGRAM, argv, "this installation of Treadle is incomplete");
}

void start_group(const CommandLine& line) {
  if (!line.has("check"))
    return launch(line, this_program());
  keep_to_one_thread_per_worker();
  check_launch(line, (program_folder() / TREADLE_RUN_PROGRAM).lexically_normal());
}

void list_plugins(const CommandLine& line) {
  const std::string only = line.arguments.empty() ? "" : line.arguments[0];
  const auto catalog = PluginCatalog::scan(reporting_options(line));
  if (!only.empty())
    expect_interface(*catalog, only);
  if (line.has("json")) {
    print(plugin_listing_json(*catalog, only));
  } else {
    print(plugin_listing(*catalog, Terminal(STDOUT_FILENO), only));
  }
}

void describe_plugin(const CommandLine& line) {
  const auto catalog = scan(line);
  const CatalogComponent component = component_named(*catalog, line.arguments);
  const ComponentDescription description =
      describe_component(catalog->interfaces().word(component.component->interface_id),
                         document_name(*catalog, component), catalog->schema(component));
  if (line.has("json")) {
    print(description.json());
  } else {
    print(description.text(Terminal(STDOUT_FILENO).width()));
  }
}

/// With the file that `name` is, when no plugin in the search path is meant.
std::shared_ptr<const PluginCatalog> scan_with(const CommandLine& line, const std::string& name) {
  CatalogOptions options = reporting_options(line);
  auto catalog = PluginCatalog::scan(options);
  std::error_code error;
  if (!plugins_meant(*catalog, name).empty() || !std::filesystem::is_regular_file(name, error))
    return catalog;
  options.examined = {std::filesystem::absolute(name).lexically_normal()};
  return PluginCatalog::scan(std::move(options));
}

void explain_plugin(const CommandLine& line) {
  const auto catalog = scan_with(line, line.arguments[0]);
  const std::vector<const PluginFile*> plugins = plugins_named(*catalog, line.arguments[0]);
  if (line.has("json")) {
    print(plugin_reasons_json(plugins));
  } else {
    print(plugin_reasons(*catalog, plugins, Terminal(STDOUT_FILENO)));
  }
}

void check_one_plugin(const CommandLine& line, char** argv) {
  if (line.has("contract"))
    become(TREADLE_CONTRACT_PROGRAM, argv, "install treadle-dev, to which it belongs");
  const PluginCheck check = check_plugin(line.arguments[0], line.plugin_settings());
  if (line.has("json")) {
    print(check.json());
  } else if (!line.has("quiet")) {
    print(check.text(Terminal(STDOUT_FILENO)));
  }
  if (!check.is_good())
    throw AlreadyTold{ErrorKind::kPlugin};
}

void examine_installation(const CommandLine& line) {
  CatalogOptions options = reporting_options(line);
  const PluginProbe probe(options.probe);
  const auto catalog = PluginCatalog::scan(std::move(options));
  const std::vector<Diagnosis> diagnoses = examine(*catalog, probe);
  if (line.has("json")) {
    print(diagnoses_json(diagnoses));
  } else {
    print(diagnoses_text(diagnoses, Terminal(STDOUT_FILENO)));
  }
  if (!all_is_well(diagnoses))
    throw AlreadyTold{ErrorKind::kPlugin};
}

void lock_plugins(const CommandLine& line) {
  const auto catalog = scan(line);
  std::vector<const PluginFile*> usable;
  for (const PluginFile& plugin : catalog->plugins()) {
    if (plugin.verdict == Verdict::kUsable)
      usable.push_back(&plugin);
  }
  const PluginLock lock = PluginLock::of(usable);
  const std::string output = line.output_file("output");
  write_file_atomically(output, lock.text());
  if (is_standard_output(output))
    return;  // nothing but the lock
  if (line.has("json")) {
    print(Json{{"output", output}, {"plugins", Json::parse(lock.text()).at("plugins")}});
  } else if (!line.has("quiet")) {
    const std::size_t count = lock.entries().size();
    print(std::to_string(count) + (count == 1 ? " plugin" : " plugins") + " locked, in " + output +
          "\n");
  }
}

/// Its stages depend on each other, which only treadle-run knows.
bool has_stages(const std::string& path) {
  const std::shared_ptr<const Document> document = Document::read(path);
  return document->value().is_object() && document->value().contains("stages");
}

/// Reports mistakes against the descriptions of plugins at once; the rest takes the code of the
/// components.
void check_document(const CommandLine& line, char** argv) {
  if (has_stages(line.arguments[0]))
    become_treadle_run(argv);
  const auto catalog = scan(line);
  const CatalogSchemaIndex index(catalog);
  const ResolvedWorkflow workflow = read_workflow(line.arguments[0], line.overrides(), index);
  if (const std::string lock = line.text("locked"); !lock.empty())
    PluginLock::read(lock).expect(used_plugins(*catalog, index, workflow.resolved), lock);
  become_treadle_run(argv);
}

void print_schema(const CommandLine& line) {
  const auto catalog = scan(line);
  std::vector<ListedComponent> listed;
  for (const CatalogComponent& component : catalog->components()) {
    listed.push_back({std::string(catalog->interfaces().word(component.component->interface_id)),
                      document_name(*catalog, component), &catalog->schema(component)});
  }
  print(compose_editor_schema(listed));
}

void list_runs(const CommandLine& line) {
  const std::vector<compare::RunRecord> runs = compare::runs_in(line.text("dir"));
  if (line.has("json")) {
    print(run_listing_json(runs));
  } else {
    print(run_listing(runs, Terminal(STDOUT_FILENO)));
  }
}

void verify(const CommandLine& line) {
  const Verification verification = verify_run(line);
  if (line.has("json")) {
    print(json_of(verification));
  } else if (!line.has("quiet") || !verification.differences.empty()) {
    print(text_of(verification));
  }
  if (!verification.differences.empty())
    throw AlreadyTold{ErrorKind::kTraining};
}

void compare(const CommandLine& line) {
  const RunComparison comparison = compare_runs(line);
  if (line.has("json")) {
    print(comparison.json());
  } else if (line.has("csv")) {
    print(comparison.table.csv());
  } else {
    print(comparison.text(Terminal(STDOUT_FILENO)));
  }
}

/// The prefix that CMake needs to find Treadle; empty when it looks there by itself, as it does
/// beside every folder of PATH.
std::filesystem::path unsearched_prefix() {
  const std::filesystem::path folder = program_folder();
  const char* path = std::getenv("PATH");
  std::istringstream entries(path == nullptr ? "" : path);
  for (std::string entry; std::getline(entries, entry, ':');) {
    std::error_code error;
    if (std::filesystem::equivalent(entry, folder, error))
      return {};
  }
  return folder.parent_path();
}

void begin_plugin(const CommandLine& line) {
  const PluginProject project = write_plugin_project(
      {line.arguments[0], line.arguments[1], line.text("id"), line.text("dir")},
      (program_folder() / TREADLE_TEMPLATES).lexically_normal());
  const std::vector<std::string> commands = next_commands(project, unsearched_prefix());
  if (line.has("json")) {
    print(project_json(project, commands));
  } else {
    print(project_text(project, commands));
  }
}

}  // namespace
}  // namespace treadle::cli

int main(int argc, char** argv) {
  using namespace treadle::cli;
  const Program program{
      false,
      {{"plugins list", list_plugins},
       {"plugins describe", describe_plugin},
       {"plugins why", explain_plugin},
       {"plugins check", [argv](const CommandLine& line) { check_one_plugin(line, argv); }},
       {"plugins lock", lock_plugins},
       {"plugins doctor", examine_installation},
       {"plugins new", begin_plugin},
       {"runs list", list_runs},
       {"runs bundle", write_bundle},
       {"verify", verify},
       {"compare", compare},
       {"check", [argv](const CommandLine& line) { check_document(line, argv); }},
       {"launch", start_group},
       {"schema", print_schema}},
      [argv](const CommandLine&) { become_treadle_run(argv); }};
  return run_program(argc, argv, program);
}
