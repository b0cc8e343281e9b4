// The bundler turns imported style sheets into one.
declare module "*.css";
