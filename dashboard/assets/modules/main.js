// All scripts of the page. They have run when Dash's renderer begins (dashboard/document.py): it
// then finds what its callbacks and tables call in the browser.
import "./clusters.js";
import "./charts.js";
import "./large.js";
import "./tables.js";
import "./markup.js";
import "./tips.js";
import "./typed.js";
import "./keys.js";
import "./replica_board.js";
import { columnsChosen } from "./columns.js";
import { keepConfigs } from "./configs.js";
import { toggleHelp, togglePalette } from "./dialogs.js";
import { follow, toggleFollow } from "./follow.js";
import * as ofGrids from "./grids.js";
import { endMarks, MarkBox } from "./marks.js";
import { namesOffered } from "./names.js";
import { greyOpeners, noteDenied, showFields, withdrawPreview } from "./operations.js";
import { forgetOutcome, keepFields, keepPlan, markStep } from "./plan.js";
import { rowsWanted } from "./rows.js";
import { applyScheme, switchScheme } from "./scheme.js";
import { closeTime, hear, readTime, togglePause } from "./time.js";
import * as views from "./views.js";

window.dash_clientside = window.dash_clientside || {};
window.dash_clientside.partiscope = {
  ...views,
  applyScheme,
  closeTime,
  columnsChosen,
  endMarks,
  follow,
  forgetOutcome,
  greyOpeners,
  hear,
  keepConfigs,
  keepFields,
  keepPlan,
  markStep,
  noteDenied,
  readTime,
  rowsWanted,
  showFields,
  switchScheme,
  toggleFollow,
  toggleHelp,
  togglePalette,
  togglePause,
  withdrawPreview,
};
window.dashAgGridFunctions = { ...window.dashAgGridFunctions, ...ofGrids };
window.dashAgGridComponentFunctions = {
  ...window.dashAgGridComponentFunctions,
  MarkBox,
};
window.dashMantineFunctions = { ...window.dashMantineFunctions, namesOffered };
