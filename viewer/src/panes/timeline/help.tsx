// The timeline's part of the help dialog: keys, mouse and the colors of slices.

import type { JSX } from "preact";
import { theme } from "../../page/theme";
import { kKindLabels, sliceColor } from "../../parts/slice_colors";
import { kTimelineKeys } from "../../parts/timeline/keys";
import "./help.css";

// Host and device slices share some labels ("annotation", "other"): each is listed once.
const kinds = kKindLabels.filter(([, label], i) => kKindLabels.findIndex(([, other]) => other === label) === i);

export function TimelineHelp(): JSX.Element {
  return (
    <>
      <h2>Timeline: keyboard and mouse</h2>
      <table>
        <tbody>
          {kTimelineKeys.map(([keys, what]) => (
            <tr key={keys}>
              <th scope="row">{keys.split(" ").map((key) => (key === "or" ? " or " : <kbd key={key}>{key}</kbd>))}</th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h3>Colors</h3>
      <ul class="help-legend">
        {kinds.map(([kind, label]) => (
          <li key={kind}>
            <span
              class="help-swatch"
              style={{ background: `rgb(${sliceColor(kind, label, theme.value).join(" ")})` }}
            />
            {label}
          </li>
        ))}
      </ul>
      <p class="muted help-note">
        Faded: many slices, each shorter than a pixel. Hatched: work that starts before or ends after the recording.
      </p>
    </>
  );
}
