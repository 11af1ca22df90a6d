// The Ranks pane's part of the help dialog.

import type { JSX } from "preact";

const kKeys = [
  ["W S, Ctrl and wheel", "zoom the timeline of ranks in and out"],
  ["A D, drag, Shift and wheel", "pan it"],
  ["F", "the whole job"],
  ["click", "choose a collective: when each rank arrived; in the heat map: show that step and rank"],
  ["double-click, or a rank's name", "open the rank's own trace there"],
  ["Esc", "clear the choice"],
] as const;

export function RanksHelp(): JSX.Element {
  return (
    <>
      <h2>Ranks: keyboard and mouse</h2>
      <table>
        <tbody>
          {kKeys.map(([keys, what]) => (
            <tr key={keys}>
              <th scope="row">{keys}</th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
