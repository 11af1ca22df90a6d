// firelane completion SHELL: a completion script, generated from the app itself so that
// it knows exactly the verbs, flags and choices that this binary has.
#include <fmt/format.h>

#include "base/shell_quoted.h"
#include "cli/app.h"
#include "cli/output.h"

namespace firelane::cli {

namespace {

struct KnownFlag {
  std::string name;  // "--rows"
  std::string help;
  bool takes_value = false;
  std::vector<std::string> choices;  // empty: a file name or free text
};

// CLI::IsMember leaves its choices in the option's type name: "TEXT:{bash,zsh,fish}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  const size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

std::vector<KnownFlag> flags_of(const CLI::App& app) {
  std::vector<KnownFlag> flags;
  for (const CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_items_expected_max() != 0;
    for (const std::string& name : option->get_lnames()) {
      flags.push_back({"--" + name, option->get_description(), takes_value, choices_of(*option)});
    }
    for (const std::string& name : option->get_snames()) {
      flags.push_back({"-" + name, option->get_description(), takes_value, choices_of(*option)});
    }
  }
  return flags;
}

std::vector<std::string> positional_choices(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && !choices_of(*option).empty()) return choices_of(*option);
  }
  return {};
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string bash_script(const CLI::App& app) {
  std::string verbs;
  std::string words;
  std::string values;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs += verb->get_name() + " ";
    std::string flags;
    for (const KnownFlag& flag : flags_of(*verb)) {
      flags += flag.name + " ";
      if (!flag.takes_value) continue;
      values += fmt::format("    {}:{}) {} ;;\n", verb->get_name(), flag.name,
                            flag.choices.empty() ? "COMPREPLY=($(compgen -f -- \"$word\")); return"
                                                 : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\")); return",
                                                               joined(flag.choices)));
    }
    words +=
        fmt::format("    {}) flags='{}' choices='{}' ;;\n", verb->get_name(), flags, joined(positional_choices(*verb)));
  }
  return fmt::format(
      R"(# bash completion of firelane; load it with: source <(firelane completion bash)
_firelane() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verb="${{COMP_WORDS[1]}}"
  local flags='' choices=''
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W '{}--help --version' -- "$word") $(compgen -f -- "$word"))
    return
  fi
  case "$verb:$before" in
{}  esac
  case "$verb" in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif [[ -n $choices ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _firelane firelane
)",
      verbs, values, words);
}

// In a zsh spec, brackets and colons have a meaning.
std::string zsh_text(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_script(const CLI::App& app) {
  std::string verbs;
  std::string cases;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs += "    " + shell_quoted(zsh_text(verb->get_name()) + ":" + verb->get_description()) + "\n";
    std::string specs;
    for (const KnownFlag& flag : flags_of(*verb)) {
      std::string spec = flag.name + "[" + zsh_text(flag.help) + "]";
      if (flag.takes_value) spec += flag.choices.empty() ? ":value:_files" : ":value:(" + joined(flag.choices) + ")";
      specs += " " + shell_quoted(spec);
    }
    const std::vector<std::string> choices = positional_choices(*verb);
    specs += " " + shell_quoted(choices.empty() ? "*:file:_files" : "1:choice:(" + joined(choices) + ")");
    cases += fmt::format("    {}) _arguments{} ;;\n", verb->get_name(), specs);
  }
  return fmt::format(
      R"(#compdef firelane
# zsh completion of firelane; save it as _firelane in a folder of $fpath, or: source <(firelane completion zsh)
_firelane() {{
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    _files
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
}}
# As a file of $fpath this is the function itself, called for the first completion; sourced, it is announced.
if [[ $funcstack[1] == _firelane ]]; then
  _firelane "$@"
else
  compdef _firelane firelane
fi
)",
      verbs, cases);
}

std::string fish_script(const CLI::App& app) {
  std::string out = "# fish completion of firelane; load it with: firelane completion fish | source\n";
  for (const CLI::App* verb : app.get_subcommands({})) {
    out += fmt::format("complete -c firelane -n __fish_use_subcommand -a {} -d {}\n", verb->get_name(),
                       shell_quoted(verb->get_description()));
    const std::string when = fmt::format("complete -c firelane -n '__fish_seen_subcommand_from {}'", verb->get_name());
    for (const KnownFlag& flag : flags_of(*verb)) {
      const bool is_long = flag.name.starts_with("--");
      out += fmt::format("{} {} {} -d {}", when, is_long ? "-l" : "-s", flag.name.substr(is_long ? 2 : 1),
                         shell_quoted(flag.help));
      if (flag.takes_value) out += flag.choices.empty() ? " -r" : " -x -a " + shell_quoted(joined(flag.choices));
      out += "\n";
    }
    const std::vector<std::string> choices = positional_choices(*verb);
    if (!choices.empty()) out += fmt::format("{} -f -a {}\n", when, shell_quoted(joined(choices)));
  }
  return out;
}

struct CompletionArgs {
  std::string shell;
  OutputOptions output;
};

Result<int> run_completion(const CompletionArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  const CommandLine line = make_command_line();
  FL_TRY_VOID(output.write(args.shell == "bash"  ? bash_script(*line.app)
                           : args.shell == "zsh" ? zsh_script(*line.app)
                                                 : fish_script(*line.app)));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb completion_verb() {
  return {.name = "completion",
          .sentence = "Print a script that completes firelane's verbs and flags in your shell.",
          .examples = {"source <(firelane completion bash)",
                       "firelane completion fish -o ~/.config/fish/completions/firelane.fish"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<CompletionArgs>();
            flags.add("SHELL", args->shell, "the shell").required().one_of({"bash", "zsh", "fish"});
            add_file_options(flags, args->output);
            return [args] { return run_completion(*args); };
          }};
}

}  // namespace firelane::cli
