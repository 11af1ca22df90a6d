// The panes beside the timeline, in the order of their tabs. The shell puts the timeline after the first.

import type { Pane } from "../app/pane";

export const panes: Pane[] = [];
