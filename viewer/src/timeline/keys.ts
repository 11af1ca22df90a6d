// What keys do in the timeline; the help lists the same.

export const kTimelineKeys: [string, string][] = [
  ["W S", "zoom in and out"],
  ["A D", "pan left and right"],
  ["F", "fit the selection, or the whole trace"],
  ["M", "mark the selection's time as a range"],
  ["← →", "previous and next slice on the same row"],
  ["↑ ↓", "parent and first child"],
  ["[ ]", "previous and next of the same name"],
  ["/", "search"],
  ["Esc", "clear range, selection, search"],
];
