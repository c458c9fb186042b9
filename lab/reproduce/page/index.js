// The index has no charts.
"use strict";

document.documentElement.dataset.charts = "0";
