// The picture of a sweep. Plain SVG that any browser, editor or CI summary shows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "report/sweep_report.h"

namespace firelane::report {

namespace {

constexpr double kWidth = 720, kPanelHeight = 220, kLeft = 90, kRight = 20, kTop = 34, kBottom = 40;
constexpr std::array kColors = {"#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#475569"};

struct Panel {
  std::string title;
  std::function<double(const compare::Run&)> value;  // below 0: not known
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

// Values of the first variable along the axis: evenly, in the order of the sweep.
std::vector<std::string> positions(const compare::Sweep& sweep) {
  std::vector<std::string> out;
  for (const compare::SweepPoint& point : sweep.points) {
    if (std::find(out.begin(), out.end(), point.values[0]) == out.end()) out.push_back(point.values[0]);
  }
  return out;
}

std::string line_name(const compare::Sweep& sweep, const compare::SweepPoint& point) {
  std::string out;
  for (size_t i = 1; i < point.values.size(); ++i) {
    out += (out.empty() ? "" : ", ") + sweep.variables[i] + "=" + point.values[i];
  }
  return out;
}

// 1, 2 or 5 times a power of ten above: the end of the axis.
double round_up(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 1.5, 2.0, 3.0, 5.0, 7.5}) {
    if (factor * power >= value) return factor * power;
  }
  return 10 * power;
}

void draw_panel(std::string& svg, const compare::Sweep& sweep, const compare::SweepBest& best, const Panel& panel,
                double y0) {
  const std::vector<std::string> places = positions(sweep);
  double most = 0;
  for (const compare::SweepPoint& point : sweep.points) {
    if (point.run) most = std::max(most, panel.value(*point.run));
  }
  const double top = round_up(most);
  const double height = kPanelHeight - kTop - kBottom;
  const double width = kWidth - kLeft - kRight;
  const auto x_of = [&](const std::string& value) {
    const auto at = static_cast<double>(std::find(places.begin(), places.end(), value) - places.begin());
    return kLeft + width * (at + 0.5) / static_cast<double>(places.size());
  };
  const auto y_of = [&](double value) { return y0 + kTop + height * (1 - value / top); };
  svg += fmt::format(R"(<text x="{}" y="{}" class="title">{}</text>)"
                     "\n",
                     kLeft, y0 + 20, escaped(panel.title));
  for (int i = 0; i <= 4; ++i) {
    const double value = top * i / 4;
    svg += fmt::format(R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" class="grid"/>)"
                       R"(<text x="{3}" y="{4:.1f}" class="left">{5:.4g}</text>)"
                       "\n",
                       kLeft, kWidth - kRight, y_of(value), kLeft - 8, y_of(value) + 4, value);
  }
  for (const std::string& place : places) {
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="below">{}</text>)"
                       "\n",
                       x_of(place), y0 + kTop + height + 18, escaped(place));
  }
  std::map<std::string, size_t> lines;
  for (const compare::SweepPoint& point : sweep.points) lines.try_emplace(line_name(sweep, point), lines.size());
  for (const auto& [name, index] : lines) {
    const char* color = kColors[index % kColors.size()];
    std::string path;
    std::string dots;
    for (size_t i = 0; i < sweep.points.size(); ++i) {
      const compare::SweepPoint& point = sweep.points[i];
      if (line_name(sweep, point) != name) continue;
      const double x = x_of(point.values[0]);
      if (!point.run || panel.value(*point.run) < 0) {
        dots += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="failed">{}</text>)"
                            "\n",
                            x, y0 + kTop + height - 4, point.run ? "" : "&#10005;");
        continue;
      }
      const double y = y_of(panel.value(*point.run));
      path += fmt::format("{:.1f},{:.1f} ", x, y);
      const bool marked = i == best.best || i == best.knee;
      dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"/>)"
                          "\n",
                          x, y, marked ? 6 : 3, color);
      if (marked) {
        dots += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="below">{}</text>)"
                            "\n",
                            x, y - 10, i == best.best ? "best" : "knee");
      }
    }
    svg += fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>)"
                       "\n",
                       path, color) +
           dots;
    if (lines.size() > 1) {
      svg += fmt::format(R"(<text x="{}" y="{:.1f}" class="legend" style="fill:{}">{}</text>)"
                         "\n",
                         kWidth - kRight, y0 + kTop + 14 * static_cast<double>(index), color, escaped(name));
    }
  }
}

}  // namespace

std::string sweep_svg(const compare::Sweep& sweep) {
  const compare::Throughput kind = compare::throughput_kind(sweep);
  const std::array<Panel, 3> all = {
      {{kind == compare::Throughput::kTokens    ? "Tokens per second"
        : kind == compare::Throughput::kSamples ? "Samples per second"
                                                : "Steps per second",
        [kind](const compare::Run& run) { return compare::throughput_of(run, kind); }},
       {"Peak memory, MiB",
        [](const compare::Run& run) { return run.has_memory ? static_cast<double>(run.peak_bytes) / (1 << 20) : -1; }},
       {"Energy per step, J", [](const compare::Run& run) { return run.energy_joules; }}}};
  std::string body;
  double y = 0;
  const compare::SweepBest best = compare::find_best(sweep);
  for (const Panel& panel : all) {
    const bool known = std::any_of(sweep.points.begin(), sweep.points.end(), [&](const compare::SweepPoint& point) {
      return point.run && panel.value(*point.run) > 0;
    });
    if (!known) continue;
    draw_panel(body, sweep, best, panel, y);
    y += kPanelHeight;
  }
  const std::string axis = sweep.variables.empty() ? "" : sweep.variables[0];
  return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">
<style>text{{font:12px sans-serif;fill:#334155}}.title{{font-weight:bold}}.left{{text-anchor:end}}.below{{text-anchor:middle}}
.legend{{text-anchor:end}}.failed{{text-anchor:middle;fill:#dc2626}}.grid{{stroke:#e2e8f0}}</style>
<rect width="100%" height="100%" fill="#fff"/>
)",
                     kWidth, y + 24) +
         body +
         fmt::format(R"(<text x="{}" y="{}" class="below">{}</text>)"
                     "\n</svg>\n",
                     kWidth / 2, y + 14, escaped(axis));
}

}  // namespace firelane::report
