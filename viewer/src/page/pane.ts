// What a pane is to the shell. `src/panes/index.ts` lists them in the order of the tabs.

import type { ComponentType } from "preact";
import type { TraceClient } from "../data/client";

export interface PaneProps {
  trace: TraceClient;
}

export interface Pane {
  id: string; // in the link, and the prefix of the pane's own keys there
  title: string;
  component: ComponentType<PaneProps>;
  fills?: boolean; // fills the window and scrolls by itself (the timeline); otherwise the page scrolls
  help?: ComponentType; // its part of the help dialog: keys, mouse, colors
}
