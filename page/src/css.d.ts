// The bundler joins imported style sheets into one.
declare module "*.css";
